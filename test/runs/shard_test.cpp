// Tests runs whose replicas shard optimizer states, gradients and parameters: the weights of data parallelism bit for
// bit, less memory, and checkpoints that any mesh can resume from.
#include <signal.h>

#include <map>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::shard_test {
namespace {

const std::string job = uneven_data + skip_model +
                        train_section(
                            "batch_size: 20, epochs: 3, optimizer: {name: adamw, learning_rate: 3e-3, "
                            "weight_decay: 0.01}");

Json end_of(const std::string& run_directory) { return events(run_directory, "end").back(); }

std::string run_on(const Folder& folder, const std::string& config, int ranks, const std::string& shard,
                   const std::vector<std::string>& sets = {}) {
  const std::string directory = folder / format("{}-{}-{}", shard, ranks, sets.size());
  std::vector<std::string> arguments{"run",        config, "--ranks", std::to_string(ranks),    "--run-dir", directory,
                                     "--progress", "none", "--set",   "strategy.shard=" + shard};
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return directory;
}

TEST_CASE("sharded replicas end with the bits of data parallelism on 2 and 4 ranks") {
  const Folder folder;
  const std::string config = folder.write("skips.yaml", job);
  // Small buckets, the last of which are shorter than the alignment of a shard.
  const std::vector<std::string> small{"strategy.bucket_size=1 kB", "strategy.first_bucket_size=200 B"};
  std::vector<std::string> overlapped = small, accumulated = small;
  overlapped.push_back("strategy.overlap=true");
  for (int ranks : {2, 4}) {
    const Json whole = end_of(run_on(folder, config, ranks, "none"));
    for (const char* shard : {"optimizer", "gradients", "parameters"}) {
      for (const auto& sets : {small, overlapped}) {
        CAPTURE(ranks, shard, sets.size());
        const Json end = end_of(run_on(folder, config, ranks, shard, sets));
        CHECK(end.at("weights_sha256") == whole.at("weights_sha256"));
        CHECK(end.at("train") == whole.at("train"));
        CHECK(end.at("validation") == whole.at("validation"));
      }
    }
  }
}

// Bytes of a rank by kind of memory, as printed by check.
std::map<std::string, std::int64_t> memory_of(const Folder& folder, const std::string& config, const std::string& shard,
                                              int tensor) {
  const Finished check = trainctl(folder, {"check", config, "--ranks", std::to_string(4 * tensor), "--json", "--set",
                                           "strategy.shard=" + shard, "--set", format("strategy.tensor={}", tensor)});
  INFO(check.errors);
  REQUIRE(check.code == 0);
  return Json::parse(check.out).at("memory_bytes").get<std::map<std::string, std::int64_t>>();
}

TEST_CASE("check reports the memory of each kind of shard") {
  const Folder folder;
  // One kernel of 65,536 parameters, or a rank's half of it if two ranks split the layer. Each of four replicas holds a
  // quarter of adam's two states and of the gradients.
  const std::string config = folder.write(
      "one.yaml",
      "data: {dataset: synthetic, samples: 64, shape: [256], classes: 256}\nmodel: {layers: [{dense: {units: "
      "256, use_bias: false}}]}\n" +
          train_section("batch_size: 16, epochs: 1, optimizer: adam"));
  for (const int tensor : {1, 2}) {
    CAPTURE(tensor);
    const std::int64_t whole = 65536 * 4 / tensor;
    auto none = memory_of(folder, config, "none", tensor), optimizer = memory_of(folder, config, "optimizer", tensor);
    auto gradients = memory_of(folder, config, "gradients", tensor);
    auto parameters = memory_of(folder, config, "parameters", tensor);
    CHECK(none["optimizer state"] == 2 * whole);
    CHECK(none["parameters"] == whole);
    for (auto* shared : {&optimizer, &gradients, &parameters}) CHECK((*shared)["optimizer state"] == 2 * whole / 4);
    CHECK(optimizer["gradients"] >= whole);
    for (auto* shared : {&gradients, &parameters}) {
      // The sums, including that of squares, are not sharded.
      CHECK((*shared)["gradients"] - whole / 4 == none["gradients"] - whole + 4);
    }
    CHECK(gradients["parameters"] == whole);
    CHECK(parameters["parameters"] == whole / 4);
  }
}

// Arguments for a mesh, a kind of shard, and buckets so small that shards cut through parameters.
std::vector<std::string> settings(int ranks, const std::string& shard, int tensor = 1) {
  return {"--ranks", std::to_string(ranks),
          "--set",   "strategy.shard=" + shard,
          "--set",   format("strategy.tensor={}", tensor),
          "--set",   "strategy.bucket_size=1 kB",
          "--set",   "strategy.first_bucket_size=200 B"};
}

TEST_CASE("any mesh, sharded or not, can resume from a checkpoint of sharded ranks") {
  const Folder folder;
  const std::string config = folder.write("skips.yaml", job);
  const std::string directory = folder / "resumed";
  const auto until = [&](int epochs, const std::vector<std::string>& mesh) {
    std::vector<std::string> arguments{"run",        config, "--run-dir", directory,
                                       "--progress", "none", "--set",     format("train.epochs={}", epochs)};
    arguments.insert(arguments.end(), mesh.begin(), mesh.end());
    const Finished run = trainctl(folder, arguments);
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
  };
  until(1, settings(4, "parameters"));
  until(2, settings(4, "parameters", 2));
  until(3, settings(3, "optimizer"));
  until(4, settings(4, "gradients", 2));
  until(5, settings(1, "none"));
  const std::string whole = run_on(folder, config, 1, "none", {"train.epochs=5"});
  const std::vector<Json> expected = events(whole, "epoch"), found = events(directory, "epoch");
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].at("train").at("loss").get<double>() ==
          Approx(expected[i].at("train").at("loss").get<double>()).epsilon(1e-4));
  }
  const auto loss_on = [&](const std::vector<std::string>& mesh) {
    std::vector<std::string> arguments{"eval", config, "--run", directory, "--json"};
    arguments.insert(arguments.end(), mesh.begin(), mesh.end());
    const Finished eval = trainctl(folder, arguments);
    INFO(tail(eval.errors));
    REQUIRE(eval.code == 0);
    return Json::parse(eval.out).at("loss").get<double>();
  };
  const double loss = loss_on(settings(1, "none"));
  for (const char* shard : {"optimizer", "parameters"}) {
    CHECK(loss_on(settings(4, shard, 2)) == Approx(loss).epsilon(1e-5));
  }
}

TEST_CASE("sharded replicas that split layers can be stopped, and another mesh resumes") {
  const Folder folder;
  const std::string endless = folder.write(
      "endless.yaml", uneven_data + skip_model + train_section("batch_size: 20, epochs: 100000, optimizer: adam"));
  for (const char* shard : {"gradients", "parameters"}) {
    CAPTURE(shard);
    const std::string directory = folder / shard;
    std::vector<std::string> arguments{"run", endless, "--run-dir", directory};
    for (const std::string& setting : settings(4, shard, 2)) arguments.push_back(setting);
    Command run(folder, arguments);
    REQUIRE(run.says("step 9/"));
    run.send(SIGTERM);
    CHECK(run.wait() == 75);
    INFO(tail(run.errors()));
    CHECK(run.left_no_process());
    CHECK(trainctl(folder, {"inspect", directory + "/checkpoints/last"}).code == 0);
    const std::int64_t steps = events(directory, "end").back().at("step");
    CHECK(steps >= 9);
    const Finished rest = trainctl(folder, {"run", endless, "--run-dir", directory, "--ranks", "1", "--progress",
                                            "none", "--set", format("train.max_steps={}", steps + 2)});
    INFO(tail(rest.errors));
    CHECK(rest.code == 0);
    CHECK(events(directory, "start").back().at("first_step") == steps);
  }
}

TEST_CASE("lamb and shard are refused together with the optimizer's line") {
  const Folder folder;
  const std::string config =
      folder.write("lamb.yaml", uneven_data + mlp_model + train_section("batch_size: 20, epochs: 1, optimizer: lamb") +
                                    "strategy: {shard: optimizer}\n");
  const Finished check = trainctl(folder, {"check", config, "--ranks", "2"});
  CHECK(check.code == 2);
  CHECK(contains(check.out + check.errors, "lamb.yaml:12:"));
  CHECK(contains(check.out + check.errors, "the optimizer needs norms of whole parameters, but ranks hold shards of"));
}

}  // namespace
}  // namespace trainctl::test::shard_test
