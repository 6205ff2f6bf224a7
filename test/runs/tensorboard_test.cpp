// Compares histograms and samples of whole runs, on meshes of every kind, with the checkpoints and metrics of the same
// runs.
#include <algorithm>
#include <cmath>

#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/event_files.h"

namespace trainctl::test::tensorboard_run_test {
namespace {

const std::string job = uneven_data + skip_model +
                        train_section(
                            "batch_size: 20, epochs: 2, optimizer: {name: adamw, learning_rate: 3e-3, weight_decay: "
                            "0.01}, clip_norm: 0.5");

struct Variant {
  const char* name;
  int ranks;
  std::vector<std::string> sets;
};

const std::vector<Variant> variants{
    {"one rank", 1, {}},
    {"micro-batches in bfloat16", 1, {"train.gradient_accumulation=2", "train.precision=bfloat16"}},
    {"replicas", 3, {}},
    {"sharded states", 2, {"strategy.shard=optimizer", "strategy.bucket_size=1 kB"}},
    {"sharded gradients", 2, {"strategy.shard=gradients", "strategy.bucket_size=1 kB"}},
    {"sharded parameters", 4, {"strategy.shard=parameters", "strategy.bucket_size=1 kB"}},
    {"a pipeline", 2, {"strategy.pipeline=2"}},
    {"split layers", 2, {"strategy.tensor=2"}},
    {"a mesh", 8, {"strategy.pipeline=2", "strategy.tensor=2"}},
    {"logical shards", 2, {"strategy.reproducible={shards: 4}"}},
    {"local steps", 2, {"strategy.sync_every=3"}},
};

std::string run_on(const Folder& folder, const std::string& config, const Variant& variant, const std::string& log) {
  const std::string directory = folder / format("{}-{}", variant.name, log == "none" ? 0 : 1);
  std::vector<std::string> arguments{
      "run",        config, "--ranks", std::to_string(variant.ranks), "--run-dir", directory,
      "--progress", "none", "--set",   "log.histograms=" + log,       "--set",     "log.gradient_norms=" + log};
  for (const std::string& set : variant.sets) arguments.insert(arguments.end(), {"--set", set});
  if (log == "none") arguments.insert(arguments.end(), {"--set", "log.samples=none"});
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return directory;
}

void compare(const HistogramFields& found, const NamedTensor& expected) {
  const std::span<const float> values(expected.view.as<float>(), static_cast<std::size_t>(expected.view.count));
  double sum = 0, squares = 0;
  for (const double value : values) sum += value, squares += value * value;
  CHECK(found.count == static_cast<double>(values.size()));
  CHECK(found.minimum == *std::ranges::min_element(values));
  CHECK(found.maximum == *std::ranges::max_element(values));
  CHECK(found.sum == Approx(sum).epsilon(1e-9).margin(1e-9));
  CHECK(found.sum_of_squares == Approx(squares).epsilon(1e-9));
  double below = 0;
  for (std::size_t i = 0; i < found.limits.size(); ++i) {
    below += found.counts[i];
    // A value at a positive limit counts as above it.
    const double limit = found.limits[i];
    const auto expected_below =
        std::ranges::count_if(values, [&](double value) { return value < limit || (value == limit && limit < 0); });
    if (limit != 0) CHECK(below == static_cast<double>(expected_below));
  }
  CHECK(below == found.count);
}

TEST_CASE("histograms show a run's weights and gradients on every mesh, and do not change the run") {
  const Folder folder;
  const std::string config = folder.write("skips.yaml", job);
  for (const Variant& variant : variants) {
    CAPTURE(variant.name);
    const std::string run = run_on(folder, config, variant, "1 epoch");
    const auto found = histograms_in(events_in(run + "/tensorboard/train"));
    const LoadedCheckpoint last = load_named_checkpoint(run + "/checkpoints/last");
    const std::vector<Json> steps = events(run, "step"), ends = events(run, "end");
    const std::int64_t step = last.snapshot.step;
    REQUIRE(step == 12);
    REQUIRE(ends.back().at("weights_sha256") ==
            events(run_on(folder, config, variant, "none"), "end").back().at("weights_sha256"));
    std::size_t weights = 0, gradients = 0;
    for (const NamedTensor& tensor : last.snapshot.weights) {
      CAPTURE(tensor.name);
      REQUIRE(found.contains({6, "weights/" + tensor.name}));
      REQUIRE(found.contains({12, "weights/" + tensor.name}));
      compare(found.at({12, "weights/" + tensor.name}), tensor);
      CHECK(found.at({6, "gradients/" + tensor.name}).count == static_cast<double>(tensor.view.count));
      ++weights;
    }
    for (const std::int64_t at : {6, 12}) {
      double squares = 0;
      for (const auto& [key, histogram] : found) {
        if (key.first == at && key.second.starts_with("gradients/")) {
          squares += histogram.sum_of_squares;
          ++gradients;
        }
      }
      for (const Json& event : steps) {
        if (event.at("step") != at) continue;
        CHECK(std::sqrt(squares) == Approx(event.at("gradient_norm").get<double>()).epsilon(1e-4));
      }
    }
    const std::vector<Json> norms = events(run, "gradient_norms");
    REQUIRE(norms.size() == 2);
    for (const Json& event : norms) {
      std::map<std::string, double> squares;
      for (const auto& [key, histogram] : found) {
        const std::size_t prefix = key.second.find('/') + 1, name = key.second.rfind('/');
        if (key.first != event.at("step") || !key.second.starts_with("gradients/")) continue;
        squares[key.second.substr(prefix, name - prefix)] += histogram.sum_of_squares;
      }
      REQUIRE(squares.size() == event.at("norms").size());
      for (const auto& [layer, sum] : squares) {
        CAPTURE(layer);
        CHECK(event.at("norms").at(layer).get<double>() == Approx(std::sqrt(sum)));
      }
    }
    CHECK(gradients == 2 * weights);
    CHECK(found.size() == 4 * weights);
  }
}

// The rows of a table of samples: number, label, prediction and probability of each.
std::vector<std::vector<std::string>> rows_of(const std::string& table) {
  std::vector<std::vector<std::string>> rows;
  std::size_t at = 0;
  for (int line = 0; at < table.size(); ++line) {
    const std::size_t end = table.find('\n', at);
    std::vector<std::string> cells;
    for (std::size_t cell = at + 2; cell < end;) {
      const std::size_t bar = table.find(" |", cell);
      cells.push_back(table.substr(cell, bar - cell));
      cell = bar + 3;
    }
    if (line >= 2) rows.push_back(cells);
    at = end + 1;
  }
  return rows;
}

TEST_CASE("the same samples are shown after every evaluation, with the same predictions on every mesh") {
  const Folder folder;
  const std::string config = folder.write("skips.yaml", job);
  std::vector<std::vector<std::string>> expected;
  for (const Variant& variant : variants) {
    const auto is = [&](const char* name) { return std::string(name) == variant.name; };
    if (!is("one rank") && !is("a pipeline") && !is("split layers") && !is("replicas") && !is("local steps")) continue;
    CAPTURE(variant.name);
    const std::string run = run_on(folder, config, variant, "1 epoch");
    const auto found = strings_in(events_in(run + "/tensorboard/validation"));
    std::vector<std::vector<std::string>> rows;
    for (const std::int64_t step : {6, 12}) {
      REQUIRE(found.contains({step, "samples"}));
      const auto before = rows;
      rows = rows_of(found.at({step, "samples"}).strings.at(0));
      REQUIRE(rows.size() == 8);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        REQUIRE(rows[i].size() == 4);
        CHECK(found.contains({step, format("samples/{} {}", rows[i][0], rows[i][1])}));
        CHECK(std::stod(rows[i][3]) >= 0.2);  // the most likely of five classes
        if (i > 0) CHECK(std::stol(rows[i][0]) > std::stol(rows[i - 1][0]));
        if (!before.empty()) CHECK(rows[i][0] == before[i][0]);
        if (!before.empty()) CHECK(rows[i][1] == before[i][1]);
      }
    }
    CHECK(found.size() == 2 * 9);
    if (is("one rank")) expected = rows;
    if (!is("a pipeline") && !is("split layers")) continue;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i][0] == expected[i][0]);
      CHECK(rows[i][1] == expected[i][1]);
      CHECK(std::stod(rows[i][3]) == Approx(std::stod(expected[i][3])).margin(2e-3));
    }
  }
}

TEST_CASE("histograms with an interval in seconds, or without TensorBoard, are refused") {
  const Folder folder;
  const std::string config = folder.write("skips.yaml", job);
  const auto refused = [&](std::vector<std::string> sets) {
    std::vector<std::string> arguments{"check", config};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    const Finished check = trainctl(folder, arguments);
    CHECK(check.code == 2);
    return check.errors;
  };
  CHECK(contains(refused({"log.histograms=30 s"}), "histograms must be none, or a number of steps or epochs"));
  CHECK(contains(refused({"log.gradient_norms=0 steps"}), "gradient_norms must be none, or a number of steps"));
  CHECK(contains(refused({"log.histograms=1 epoch", "log.tensorboard=false"}), "tensorboard is false"));
  CHECK(contains(refused({"log.samples=0"}), "samples must be"));
}

}  // namespace
}  // namespace trainctl::test::tensorboard_run_test
