// Tests runs whose replicas have shares of each batch in proportion to their speeds.
#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::share_test {
namespace {

// 30 steps; the last batch of an epoch has 3 samples.
const std::string job = uneven_data + skip_model +
                        train_section(
                            "batch_size: 20, epochs: 5, optimizer: {name: sgd, learning_rate: 0.05, momentum: "
                            "0.9}");

std::string run_on(const Folder& folder, const std::string& config, int ranks, const std::string& name,
                   const std::vector<std::string>& sets = {}) {
  const std::string directory = folder / name;
  std::vector<std::string> arguments{"run",       config,    "--ranks",    std::to_string(ranks),
                                     "--run-dir", directory, "--progress", "none"};
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return directory;
}

void check_same_losses(const std::string& directory, const std::string& expected) {
  const std::vector<Json> found = events(directory, "step"), steps = events(expected, "step");
  REQUIRE(found.size() == 30);
  REQUIRE(steps.size() == 30);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i].at("loss").get<double>() == Approx(steps[i].at("loss").get<double>()).epsilon(1e-4));
  }
  const std::vector<Json> epochs = events(directory, "epoch"), whole = events(expected, "epoch");
  REQUIRE(epochs.size() == whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(epochs[i].at("validation").at("loss").get<double>() ==
          Approx(whole[i].at("validation").at("loss").get<double>()).epsilon(1e-4));
  }
}

std::string share_of_run(const std::string& directory) {
  const std::string config = read_file(directory + "/config.yaml");
  const std::size_t resolved = config.find("\nresolved:"), at = config.find("  share: [", resolved);
  if (resolved == std::string::npos || at == std::string::npos) return "";
  return config.substr(at + 10, config.find(']', at) - at - 10);
}

TEST_CASE("replicas with unequal shares follow the losses of one rank, sharded or not") {
  const Folder folder;
  const std::string config = folder.write("skips.yaml", job);
  const std::string one = run_on(folder, config, 1, "one");
  for (const char* shard : {"none", "optimizer", "gradients", "parameters"}) {
    CAPTURE(shard);
    const std::vector<std::string> sets{std::string("strategy.shard=") + shard, "strategy.bucket_size=1 kB"};
    std::vector<std::string> two = sets, three = sets, four = sets;
    two.emplace_back("strategy.share=[3, 1]");
    three.emplace_back("strategy.share=[1, 2, 1]");
    four.insert(four.end(), {"strategy.share=[3, 1]", "strategy.pipeline=2", "strategy.micro_batches=5"});
    check_same_losses(run_on(folder, config, 2, format("two-{}", shard), two), one);
    check_same_losses(run_on(folder, config, 3, format("three-{}", shard), three), one);
    check_same_losses(run_on(folder, config, 4, format("four-{}", shard), four), one);
    std::vector<std::string> idle = sets;  // replica 0 has no sample of any batch
    idle.insert(idle.end(), {"strategy.share=[1, 1000]", "train.gradient_accumulation=2"});
    check_same_losses(run_on(folder, config, 2, format("idle-{}", shard), idle), one);
  }
}

TEST_CASE("auto measures the replicas once, records their shares, and a resume keeps them") {
  const Folder folder;
  const std::string config = folder.write("skips.yaml", job);
  const std::string one = run_on(folder, config, 1, "one");
  const std::string measured = run_on(folder, config, 2, "auto", {"strategy.share=auto"});
  check_same_losses(measured, one);
  const Json shares = Json::parse("[" + share_of_run(measured) + "]");
  REQUIRE(shares.size() == 2);
  CHECK(shares[0].get<double>() + shares[1].get<double>() == 20);

  const auto until = [&](int epochs, int ranks, const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "run",        config, "--ranks", std::to_string(ranks), "--run-dir", folder / name,
        "--progress", "none", "--set",   "strategy.share=auto", "--set",     format("train.epochs={}", epochs)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished run = trainctl(folder, arguments);
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    return std::pair(Json::parse("[" + share_of_run(folder / name) + "]"), contains(run.errors, "by their measured"));
  };
  const auto first = until(1, 2, "resumed", {});
  CHECK(first.second);
  CHECK(until(3, 2, "resumed", {}) == std::pair(first.first, false));
  // Micro-batches of one sample each allow only one choice, whatever was measured before.
  const auto cut = until(4, 2, "cut", {"--resume", folder / "resumed", "--set", "train.gradient_accumulation=10"});
  CHECK(cut.first == Json({10, 10}));
  const auto on_three = until(5, 3, "resumed", {});
  CHECK(on_three.second);
  CHECK(on_three.first.size() == 3);
  const std::string sharded =
      run_on(folder, config, 2, "sharded", {"strategy.share=auto", "strategy.shard=parameters"});
  check_same_losses(sharded, one);
  CHECK_FALSE(share_of_run(sharded).empty());
  const std::string stages = run_on(folder, config, 4, "stages", {"strategy.share=auto", "strategy.pipeline=2"});
  check_same_losses(stages, one);
  CHECK_FALSE(share_of_run(stages).empty());
  CHECK_FALSE(
      share_of_run(run_on(folder, config, 2, "accumulated", {"strategy.share=auto", "train.gradient_accumulation=5"}))
          .empty());
}

TEST_CASE("check counts the memory of the replica with the most samples, whichever it is") {
  const Folder folder;
  const std::string config = folder.write(
      "bn.yaml", uneven_data + batch_norm_model + train_section("batch_size: 20, epochs: 1, optimizer: sgd"));
  const auto check = [&](const std::string& share, const std::string& flag) {
    const Finished run = trainctl(folder, {"check", config, "--ranks", "2", "--set", "strategy.share=" + share, flag});
    REQUIRE(run.code == 0);
    return run.out;
  };
  const auto arena = [&](const std::string& share) {
    return Json::parse(check(share, "--json")).at("arena_bytes").get<std::int64_t>();
  };
  CHECK(arena("[3, 1]") == arena("[1, 3]"));
  CHECK(arena("[3, 1]") > arena("equal"));
  CHECK(contains(check("[3, 1]", "-v"), "over the 5 to 15 samples that a rank has"));
  CHECK(contains(check("auto", "-v"), "are measured when training begins"));
}

TEST_CASE("a list of speeds that does not fit is refused with its line") {
  const Folder folder;
  const auto refused = [&](const std::string& strategy, int ranks) {
    const std::string config = folder.write("net.yaml", job + "strategy: {" + strategy + "}\n");
    const Finished check = trainctl(folder, {"check", config, "--ranks", std::to_string(ranks)});
    CHECK(check.code == 2);
    return check.out + check.errors;
  };
  CHECK(contains(refused("share: [1, 2, 1]", 2), "strategy.share has 3 speeds, but there are 2 replicas"));
  CHECK(contains(refused("share: [1, 0]", 2), "the speed of replica 1 must be more than 0"));
  CHECK(contains(refused("share: []", 2), "share has no speeds"));
  CHECK(contains(refused("share: fast", 2), "share"));
  const std::string accumulated = folder.write(
      "accumulated.yaml", uneven_data + skip_model +
                              train_section("batch_size: 20, epochs: 1, optimizer: sgd, gradient_accumulation: 2") +
                              "strategy: {share: [3, 1]}\n");
  const Finished check = trainctl(folder, {"check", accumulated, "--ranks", "2"});
  CHECK(check.code == 2);
  CHECK(contains(check.out + check.errors, "choose strategy.share such that 2 divides each replica's samples"));
}

}  // namespace
}  // namespace trainctl::test::share_test
