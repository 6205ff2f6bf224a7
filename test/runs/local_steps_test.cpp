// Tests runs whose replicas take local steps: everything that is due waits for the next average, and a resumed run
// continues with the same bits.
#include <signal.h>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::local_steps_test {
namespace {

// Six steps an epoch: averages after steps 4, 6, 8, 12, 16, 18, ...
const std::string job = uneven_data + batch_norm_model + "checkpoint: {every: 3 steps, keep: 50}\n" +
                        train_section("batch_size: 20, epochs: 3, optimizer: {name: adam, learning_rate: 3e-3}") +
                        "strategy: {sync_every: 4, verify_every: 1 steps}\n";

std::vector<std::int64_t> steps_of(const std::vector<Json>& lines) {
  std::vector<std::int64_t> steps;
  for (const Json& line : lines) steps.push_back(line.at("step"));
  return steps;
}

TEST_CASE("replicas that take local steps are compared, logged and saved when they are averaged") {
  const Folder folder;
  const std::string config = folder.write("local.yaml", job);
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const std::string directory = folder / format("run-{}", ranks);
    const Finished run = trainctl(folder, {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const std::vector<std::int64_t> averages{4, 6, 8, 12, 16, 18};
    CHECK(steps_of(events(directory, "step")) == averages);
    for (const std::int64_t saved : steps_of(events(directory, "checkpoint"))) {
      CHECK(std::find(averages.begin(), averages.end(), saved) != averages.end());
    }
    const std::vector<Json> epochs = events(directory, "epoch");
    REQUIRE(epochs.size() == 3);
    CHECK(epochs[2].at("train").at("loss").get<double>() < epochs[0].at("train").at("loss").get<double>());
  }
}

TEST_CASE("a resumed run with local steps ends with the bits of an uninterrupted run") {
  const Folder folder;
  const std::string config = folder.write("local.yaml", job);
  const std::string whole = folder / "whole", pieces = folder / "pieces";
  const auto until = [&](const std::string& directory, int epochs) {
    const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none",
                                           "--set", format("train.epochs={}", epochs)});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    return events(directory, "end").back();
  };
  const Json expected = until(whole, 3);
  until(pieces, 1);
  const Json end = until(pieces, 3);
  CHECK(end.at("weights_sha256") == expected.at("weights_sha256"));
  CHECK(end.at("validation") == expected.at("validation"));
}

TEST_CASE("a stop takes effect at the next average") {
  const Folder folder;
  const std::string config = folder.write("endless.yaml", job);
  Command run(folder, {"run", config, "--ranks", "2", "--set", "train.epochs=100000", "--set", "checkpoint.keep=2"});
  REQUIRE(run.says("step 16/"));
  run.send(SIGINT);
  CHECK(run.wait() == 75);
  INFO(tail(run.errors()));
  const std::int64_t step = events(folder / "runs/endless", "end").back().at("step");
  CHECK((step % 4 == 0 || step % 6 == 0));
}

TEST_CASE("options that cannot be combined with local steps are refused") {
  const Folder folder;
  const auto refused = [&](const std::string& text, const std::string& message) {
    const std::string config = folder.write("bad.yaml", text);
    const Finished check = trainctl(folder, {"check", config, "--ranks", "2"});
    CAPTURE(check.out, check.errors);
    CHECK(check.code == 2);
    CHECK(contains(check.out + check.errors, message));
  };
  const std::string base = uneven_data + mlp_model + train_section("batch_size: 20, epochs: 1, optimizer: sgd");
  refused(base + "strategy: {sync_every: 2, shard: optimizer}\n",
          "`shard: optimizer` divides states among the replicas");
  refused(base + "strategy: {sync_every: 2, gradient_dtype: bfloat16}\n", "no gradients are communicated");
  refused(base + "strategy: {sync_every: 0}\n", "sync_every");
  refused(uneven_data + mlp_model + train_section("batch_size: 20, epochs: 1, optimizer: sgd, precision: float16") +
              "strategy: {sync_every: 2}\n",
          "in float16 all replicas scale their losses");
  refused(uneven_data +
              "model: {layers: [{conv2d: {filters: 4, kernel_size: 3}}, {batch_normalization: {synchronized: true}}, "
              "flatten, {dense: 5}]}\n" +
              train_section("batch_size: 20, epochs: 1, optimizer: sgd") + "strategy: {sync_every: 2}\n",
          "is synchronized in every step, and strategy.sync_every is 2");
}

}  // namespace
}  // namespace trainctl::test::local_steps_test
