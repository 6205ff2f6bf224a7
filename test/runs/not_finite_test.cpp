// Tests what runs do after a step that is not finite: skip its update, go back to a checkpoint, or stop and keep the
// state, which `replay` repeats. The reference is gradient descent in float64, written out by hand.
#include <cmath>
#include <filesystem>

#include "core/base/format.h"
#include "core/base/random.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/files.h"

namespace trainctl::test::not_finite_test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t samples = 40, features = 4, units = 64, batch = 10, steps = 12;
constexpr std::size_t bad_sample = 25;  // in the third of the four batches of an epoch

using Values = std::vector<double>;
using Weights = std::map<std::string, Values>;

// Random data, in float32 exactly. The squared error of the samples in `bad` overflows.
struct Arrays {
  std::vector<float> x = std::vector<float>(samples * features), y = std::vector<float>(samples);
};

Arrays write_arrays(const Folder& folder, const std::vector<std::size_t>& bad, float scale = 1) {
  Arrays arrays;
  std::uint32_t index = 0;
  for (auto* values : {&arrays.x, &arrays.y}) {
    for (float& value : *values) value = 2 * uniform01(philox({index++, 0, 0, 0}, {3, 4})[0]) - 1;
  }
  for (float& value : arrays.y) value *= scale;
  for (const std::size_t sample : bad) arrays.x[sample * features + 1] = 3e38f;
  folder.write("x.npy", npy("<f4", format("({}, {})", samples, features), raw(arrays.x)));
  folder.write("y.npy", npy("<f4", format("({},)", samples), raw(arrays.y)));
  return arrays;
}

// Two dense layers without activations.
std::string write_config(const Folder& folder, const std::string& keys) {
  return folder.write("config.yaml", R"(
data: {dataset: npy, x: x.npy, y: y.npy, shuffle: false}
model: {layers: [{dense: {name: hidden, units: 64}}, {dense: {name: out, units: 1}}]}
checkpoint: {every: 2 steps, keep: 99}
log: {every: 1 steps}
train: {loss: mean_squared_error, batch_size: 10, epochs: 3, )" +
                                         keys + "}\n");
}

const std::string momentum = "optimizer: {name: sgd, learning_rate: 0.05, momentum: 0.9}";

Weights weights_at(const std::string& checkpoint) {
  Weights weights;
  const LoadedCheckpoint loaded = load_named_checkpoint(checkpoint);
  for (const NamedTensor& tensor : loaded.snapshot.weights) {
    const auto* values = tensor.view.as<float>();
    weights[tensor.name].assign(values, values + tensor.view.count);
  }
  return weights;
}

std::string checkpoint_of(const std::string& directory, std::int64_t step) {
  return format("{}/checkpoints/step-{:08}", directory, step);
}

// Gradient descent with Keras' momentum on the mean squared error, without the batches in which a sample is bad.
Weights reference(const Arrays& arrays, Weights weights, const std::vector<std::size_t>& bad) {
  Weights velocity;
  for (const auto& [name, values] : weights) velocity[name] = Values(values.size());
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t first = step * batch % samples;
    const auto is_in_batch = [first](std::size_t sample) { return sample >= first && sample < first + batch; };
    if (std::any_of(bad.begin(), bad.end(), is_in_batch)) continue;
    Weights gradient;
    for (const auto& [name, values] : weights) gradient[name] = Values(values.size());
    for (std::size_t sample = first; sample < first + batch; ++sample) {
      const float* x = &arrays.x[sample * features];
      Values hidden = weights["hidden/bias"];
      double out = weights["out/bias"][0];
      for (std::size_t u = 0; u < units; ++u) {
        for (std::size_t f = 0; f < features; ++f) hidden[u] += x[f] * weights["hidden/kernel"][f * units + u];
        out += hidden[u] * weights["out/kernel"][u];
      }
      const double error = 2 * (out - arrays.y[sample]) / batch;
      gradient["out/bias"][0] += error;
      for (std::size_t u = 0; u < units; ++u) {
        gradient["out/kernel"][u] += error * hidden[u];
        const double back = error * weights["out/kernel"][u];
        gradient["hidden/bias"][u] += back;
        for (std::size_t f = 0; f < features; ++f) gradient["hidden/kernel"][f * units + u] += back * x[f];
      }
    }
    for (auto& [name, values] : weights) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        velocity[name][i] = 0.9 * velocity[name][i] - 0.05 * gradient[name][i];
        values[i] += velocity[name][i];
      }
    }
  }
  return weights;
}

double largest_difference(const Weights& a, const Weights& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (const auto& [name, values] : a) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = std::abs(values[i] - b.at(name).at(i));
      largest = difference <= largest ? largest : difference;  // NaN is a difference
      if (std::isnan(difference)) return INFINITY;
    }
  }
  return largest;
}

Finished run_in(const Folder& folder, const std::string& config, const std::string& directory, int ranks,
                const std::vector<std::string>& settings, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"run",       config,    "--ranks",    std::to_string(ranks),
                                 "--run-dir", directory, "--progress", "none"};
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  words.insert(words.end(), more.begin(), more.end());
  return trainctl(folder, words);
}

std::string hash_of(const std::string& directory) { return events(directory, "end").back().at("weights_sha256"); }

Json replay(const Folder& folder, const std::string& directory, std::int64_t step, int ranks) {
  const Finished run = trainctl(
      folder, {"replay", directory, "--step", std::to_string(step), "--ranks", std::to_string(ranks), "--json"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return Json::parse(run.out);
}

struct Mesh {
  int ranks;
  std::vector<std::string> settings;
};
const std::vector<Mesh> meshes = {{1, {}},
                                  {1, {"train.gradient_accumulation=5"}},
                                  {3, {}},
                                  {2, {"strategy.shard=optimizer"}},
                                  {2, {"strategy.shard=gradients"}},
                                  {2, {"strategy.shard=parameters"}},
                                  {2, {"strategy.pipeline=2"}},
                                  {2, {"strategy.tensor=2"}},
                                  {2, {"strategy.reproducible={shards: 5}"}}};

TEST_CASE("a batch whose step is not finite changes nothing, and the others train as in float64, on every mesh") {
  const Folder folder;
  const Arrays arrays = write_arrays(folder, {bad_sample});
  const std::string config = write_config(folder, momentum);
  Weights expected;
  int number = 0;
  for (const char* action : {"rollback", "skip"}) {
    for (const Mesh& mesh : meshes) {
      const std::string directory = folder / format("run-{}", ++number);
      CAPTURE(action, mesh.ranks, mesh.settings);
      std::vector<std::string> settings = mesh.settings;
      settings.push_back(std::string("train.on_not_finite=") + action);
      const Finished run = run_in(folder, config, directory, mesh.ranks, settings);
      INFO(tail(run.errors));
      REQUIRE(run.code == 0);
      if (expected.empty()) expected = reference(arrays, weights_at(checkpoint_of(directory, 0)), {bad_sample});
      CHECK(largest_difference(weights_at(checkpoint_of(directory, 12)), expected) < 1e-5);
      const std::vector<Json> found = events(directory, "not_finite");
      REQUIRE(found.size() == 3);
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(found[i].at("step") == 4 * i + 3);
        CHECK(found[i].at("action") == action);
        if (std::string(action) == "skip") continue;
        CHECK(found[i].at("to_step") == 4 * i + 2);
        CHECK(found[i].at("skipped_step") == 4 * i + 3);
      }
      CHECK(events(directory, "epoch").back().at("train").at("loss").is_number());
    }
  }
}

TEST_CASE("the skipped batches are part of the checkpoints, so that a resumed run skips the same ones") {
  const Folder folder;
  write_arrays(folder, {bad_sample});
  const std::string config = write_config(folder, momentum + ", on_not_finite: rollback");
  const std::vector<std::string> reproducible{"strategy.reproducible={shards: 5}"};
  const std::string whole = folder / "whole", cut = folder / "cut", other = folder / "other";
  REQUIRE(run_in(folder, config, whole, 1, reproducible).code == 0);
  CHECK(load_checkpoint(checkpoint_of(whole, 2)).snapshot.metadata.at("skipped_batches") == "2");

  std::vector<std::string> five = reproducible;
  five.emplace_back("train.max_steps=5");
  REQUIRE(run_in(folder, config, cut, 2, five).code == 0);
  REQUIRE(run_in(folder, config, cut, 3, reproducible).code == 0);
  CHECK(hash_of(cut) == hash_of(whole));

  const Finished run = run_in(folder, config, other, 2, reproducible, {"--resume", checkpoint_of(whole, 2)});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(hash_of(other) == hash_of(whole));
  const std::vector<Json> found = events(other, "not_finite");
  REQUIRE(found.size() == 2);  // the batch of step 3 is skipped without being computed
  CHECK(found[0].at("step") == 7);
  CHECK(found[1].at("step") == 11);
}

TEST_CASE("a run ends when too many steps are not finite, or when the parameters are not") {
  const Folder folder;
  std::vector<std::size_t> bad;
  for (std::size_t sample = 20; sample < 40; ++sample) bad.push_back(sample);
  write_arrays(folder, bad);
  const std::string config = write_config(folder, momentum);
  const auto ends = [&](const std::string& name, const std::vector<std::string>& settings, int code,
                        const std::string& words) {
    const Finished run = run_in(folder, config, folder / name, 2, settings);
    CAPTURE(name, tail(run.errors));
    CHECK(run.code == code);
    CHECK(contains(run.errors, words));
  };
  ends("skip-2", {"train.on_not_finite=skip", "train.max_skipped=2"}, 0, "2 of at most 2 such steps in a row");
  ends("skip-1", {"train.on_not_finite=skip", "train.max_skipped=1"}, 4, "train.max_skipped");
  ends("rollback-2", {"train.on_not_finite=rollback", "train.max_skipped=2"}, 0, "skips the batch of step 4");
  ends("rollback-1", {"train.on_not_finite=rollback", "train.max_skipped=1"}, 4, "train.max_skipped");
  write_arrays(folder, {}, 1000);  // the first update makes parameters infinite
  const std::string explodes = "train.optimizer.learning_rate=3e38";
  ends("explodes", {"train.on_not_finite=skip", explodes}, 4, "the parameters are not finite either");
  ends("explodes-back", {"train.on_not_finite=rollback", "train.max_skipped=1", explodes}, 4, "train.max_skipped");
}

TEST_CASE("a run that stops keeps the step, and replay names the sample on any number of ranks") {
  const Folder folder;
  write_arrays(folder, {bad_sample});
  const std::string config = write_config(folder, momentum);
  const std::string directory = folder / "stopped";
  const Finished run = run_in(folder, config, directory, 3, {"strategy.reproducible={shards: 5}", "data.shuffle=true"});
  CHECK(run.code == 4);
  REQUIRE(events(directory, "not_finite").size() == 1);
  const std::int64_t step = events(directory, "not_finite")[0].at("step");
  CHECK(contains(run.errors, format("`trainctl replay {} --step {}`", directory, step)));

  const std::string kept = format("{}/not-finite/step-{:08}", directory, step);
  const std::vector<std::size_t> numbers = Json::parse(read_file(kept + "/batch.json")).at("samples");
  CHECK(numbers.size() == batch);
  CHECK(std::count(numbers.begin(), numbers.end(), bad_sample) == 1);
  const LoadedCheckpoint before = load_newest_checkpoint(kept).value();
  CHECK(before.snapshot.step == step - 1);
  for (const int ranks : {1, 3}) {
    CAPTURE(ranks);
    const Json found = replay(folder, directory, step, ranks);
    CHECK(found.at("from") == before.path);
    CHECK(found.at("not_finite").at("sample") == bad_sample);
    CHECK(found.at("not_finite").at("tensor") == "loss");
    CHECK(found.at("weights_sha256") == weights_sha256(before.snapshot.weights));
  }
  fs::remove_all(kept);  // replay then trains from the last checkpoint
  const Json found = replay(folder, directory, step, 2);
  CHECK(found.at("not_finite").at("sample") == bad_sample);
  CHECK(found.at("weights_sha256") == weights_sha256(before.snapshot.weights));
  const Finished text = trainctl(folder, {"replay", directory, "--step", std::to_string(step)});
  CHECK(contains(text.out, format("which read its largest value for sample {} of the data", bad_sample)));
  CHECK(contains(text.out, "  recorded       not finite ("));
  CHECK(contains(text.out, "), as the repeated step\n"));
}

TEST_CASE("replay repeats a finite step bit for bit, from a checkpoint or from the beginning") {
  const Folder folder;
  const std::string config =
      folder.write("mlp.yaml", uneven_data + mlp_model + "strategy: {reproducible: {shards: 4}}\n" +
                                   train_section("batch_size: 20, epochs: 2, optimizer: adam"));
  const std::string whole = folder / "whole", seven = folder / "seven";
  REQUIRE(run_in(folder, config, whole, 3, {"checkpoint={every: 4 steps, keep: 9}"}).code == 0);
  REQUIRE(run_in(folder, config, seven, 2, {"train.max_steps=7"}).code == 0);
  const std::vector<Json> steps_of = events(seven, "step");
  for (const int ranks : {1, 2}) {
    const Json found = replay(folder, whole, 7, ranks);
    CAPTURE(ranks);
    CHECK(found.at("from") == checkpoint_of(whole, 6));  // the end of an epoch
    CHECK(found.at("weights_sha256") == hash_of(seven));
    CHECK(found.at("loss") == steps_of.back().at("loss"));
    CHECK(found.at("gradient_norm") == steps_of.back().at("gradient_norm"));
    CHECK(found.at("not_finite").is_null());
  }
  const Json first = replay(folder, whole, 3, 1);
  CHECK(first.at("from").is_null());
  CHECK(first.at("loss") == steps_of.at(2).at("loss"));
  const Finished late = trainctl(folder, {"replay", whole, "--step", "99"});
  CHECK(late.code == 2);
  CHECK(contains(late.errors, "fewer than 99 steps"));
}

TEST_CASE("check refuses reactions that cannot work with the other options") {
  const Folder folder;
  write_arrays(folder, {});
  const std::string config = write_config(folder, momentum);
  const auto refused = [&](const std::string& action, const std::string& setting, const std::string& words) {
    const Finished run =
        trainctl(folder, {"check", config, "--set", "train.on_not_finite=" + action, "--set", setting});
    CAPTURE(action, setting, tail(run.errors));
    CHECK(run.code == 2);
    CHECK(contains(run.errors, words));
  };
  refused("skip", "strategy.sync_every=4", "sync_every: 1");
  refused("rollback", "strategy.sync_every=4", "sync_every: 1");
  refused("rollback", "checkpoint.weights_only=true", "checkpoint.weights_only: false");
  refused("skip", "train.players={first: {trains: [hidden], loss: output}, second: {trains: [out], loss: output}}",
          "the players before the one");
}

}  // namespace
}  // namespace trainctl::test::not_finite_test
