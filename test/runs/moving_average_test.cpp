// Tests the moving average of weights in whole runs: its values, and its use by validation, eval and checkpoints, under
// every strategy and after a resume.
#include <cmath>
#include <map>

#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::moving_average_test {
namespace {

constexpr double momentum = 0.8;
constexpr int steps = 12;

// Every step's checkpoint is kept.
std::string job(const std::string& more = "") {
  return uneven_data + batch_norm_model + "checkpoint: {every: 1 steps, keep: 50}\n" +
         train_section(
             format("batch_size: 20, epochs: 2, moving_average: {}, optimizer: {{name: adam, learning_rate: 1e-2}}{}",
                    momentum, more));
}

using Values = std::map<std::string, std::vector<double>>;

Values values_of(const std::vector<NamedTensor>& tensors, const std::string& prefix) {
  Values values;
  for (const NamedTensor& tensor : tensors) {
    if (!tensor.name.starts_with(prefix)) continue;
    const float* first = tensor.view.as<float>();
    values[tensor.name.substr(prefix.size())].assign(first, first + tensor.view.count);
  }
  return values;
}

Json end_of(const Folder& folder, const std::string& config, const std::string& name,
            const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"run", config, "--run-dir", folder / name, "--progress", "none"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return events(folder / name, "end").back();
}

// Compares the averages of a run with those computed in float64 from the latest weights in each checkpoint.
void check_averages(const std::string& directory) {
  Values expected;
  for (int step = 1; step <= steps; ++step) {
    const LoadedCheckpoint checkpoint = load_checkpoint(format("{}/checkpoints/step-{:08}", directory, step));
    const Values latest = values_of(checkpoint.snapshot.state, "latest/");
    REQUIRE(latest.size() == 5);  // two kernels, a bias, gamma and beta; no running statistics
    const Values averages = values_of(checkpoint.snapshot.weights, "");
    REQUIRE(averages.size() == 7);
    for (const auto& [name, now] : latest) {
      std::vector<double>& average = expected[name];
      const double kept = step == 1 ? 0 : momentum;
      average.resize(now.size());
      double error = 0;
      for (std::size_t i = 0; i < now.size(); ++i) {
        average[i] = kept * average[i] + (1 - kept) * now[i];
        error = std::max(error, std::abs(averages.at(name)[i] - average[i]));
      }
      CAPTURE(step, name);
      CHECK(error < 1e-6);
      if (step > 1) CHECK(averages.at(name) != now);
    }
  }
}

TEST_CASE("the moving average follows the weights that training updates, under every strategy") {
  const Folder folder;
  const std::string config = folder.write("average.yaml", job());
  const std::string plain = folder.write("plain.yaml", job());
  const Json one = end_of(folder, config, "one", {"--ranks", "1"});
  check_averages(folder / "one");
  end_of(folder, plain, "plain", {"--ranks", "1", "--set", "train.moving_average=none"});
  const LoadedCheckpoint with = load_named_checkpoint(folder / "one"),
                         without = load_named_checkpoint(folder / "plain");
  for (const auto& [name, values] : values_of(with.snapshot.state, "latest/")) {
    CHECK(values == values_of(without.snapshot.weights, "").at(name));
  }
  const Json two = end_of(folder, config, "two", {"--ranks", "2"});
  check_averages(folder / "two");
  for (const char* shard : {"optimizer", "gradients", "parameters"}) {
    CAPTURE(shard);
    const Json end =
        end_of(folder, config, shard,
               {"--ranks", "2", "--set", format("strategy.shard={}", shard), "--set", "strategy.bucket_size=1 kB"});
    CHECK(end.at("weights_sha256") == two.at("weights_sha256"));
    CHECK(end.at("validation") == two.at("validation"));
    check_averages(folder / shard);
  }
  for (const char* axis : {"pipeline", "tensor"}) {
    CAPTURE(axis);
    const Json end = end_of(folder, config, axis, {"--ranks", "2", "--set", format("strategy.{}=2", axis)});
    check_averages(folder / axis);
    if (axis == std::string("pipeline")) continue;  // its micro-batches are normalised on their own
    CHECK(end.at("validation").at("loss").get<double>() ==
          Approx(one.at("validation").at("loss").get<double>()).epsilon(1e-3));
  }
}

TEST_CASE("validation, eval and the checkpoint use the averages, also as compute copies") {
  const Folder folder;
  for (const char* precision : {"float32", "bfloat16"}) {
    CAPTURE(precision);
    const std::string config = folder.write(format("{}.yaml", precision), job(format(", precision: {}", precision)));
    end_of(folder, config, precision, {"--ranks", "2"});
    const Json expected = events(folder / precision, "epoch").back().at("validation");
    const Finished eval = trainctl(
        folder, {"eval", config, "--ranks", "2", "--json", "--checkpoint", folder / precision + "/checkpoints/last"});
    INFO(tail(eval.errors));
    REQUIRE(eval.code == 0);
    CHECK(Json::parse(eval.out).at("loss") == expected.at("loss"));
    CHECK(Json::parse(eval.out).at("accuracy") == expected.at("accuracy"));
  }
}

TEST_CASE("a run that is resumed on other numbers of ranks ends with the same averages, bit for bit") {
  const Folder folder;
  const std::string config =
      folder.write("pieces.yaml", job() + "strategy: {reproducible: {shards: 4}, shard: optimizer}\n");
  const Json whole = end_of(folder, config, "whole", {"--ranks", "1"});
  const std::vector<std::pair<const char*, const char*>> pieces{{"1", "5"}, {"3", "8"}, {"2", "12"}};
  for (const auto& [ranks, until] : pieces) {
    end_of(folder, config, "pieces", {"--ranks", ranks, "--set", format("train.max_steps={}", until)});
  }
  const Json end = events(folder / "pieces", "end").back();
  CHECK(end.at("weights_sha256") == whole.at("weights_sha256"));
  CHECK(end.at("validation") == whole.at("validation"));
}

TEST_CASE("the memory plan counts the averages, and Keras' names lead to a suggestion") {
  const Folder folder;
  const std::string config = folder.write("average.yaml", job());
  const auto memory = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"check", config, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Json::parse(trainctl(folder, arguments).out);
  };
  const Json with = memory({}), without = memory({"--set", "train.moving_average=none"});
  CHECK(with.at("memory_bytes").at("moving averages") == without.at("memory_bytes").at("parameters"));
  for (const char* key : {"ema_momentum", "decay"}) {
    const Finished check =
        trainctl(folder, {"check", config, "--set", format("train.moving_average={{{}: 0.9}}", key)});
    CHECK(check.code == 2);
    CHECK(contains(check.errors, format("unknown key '{}' in moving_average; did you mean 'momentum'?", key)));
  }
}

}  // namespace
}  // namespace trainctl::test::moving_average_test
