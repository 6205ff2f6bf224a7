// Runs whose replicas share the optimizer's states, gradients and parameters: the weights of data parallelism bit for
// bit, less memory, and checkpoints that any number of ranks goes on from.
#include <map>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/run/command.h"
#include "test/run/configs.h"

namespace trainctl::test {
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
  // Small buckets, of which the last ones are shorter than a part's alignment.
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

// Bytes of a rank by class, as check prints them.
std::map<std::string, std::int64_t> memory_of(const Folder& folder, const std::string& config,
                                              const std::string& shard) {
  const Finished check =
      trainctl(folder, {"check", config, "--ranks", "4", "--json", "--set", "strategy.shard=" + shard});
  REQUIRE(check.code == 0);
  return Json::parse(check.out).at("memory_bytes").get<std::map<std::string, std::int64_t>>();
}

TEST_CASE("check states the bytes of each stage of sharding") {
  const Folder folder;
  // 65,536 parameters of one kernel: of adam's two states and of the gradients a rank of four holds a quarter.
  const std::string config = folder.write(
      "one.yaml",
      "data: {dataset: synthetic, samples: 64, shape: [256], classes: 256}\nmodel: {layers: [{dense: {units: "
      "256, use_bias: false}}]}\n" +
          train_section("batch_size: 16, epochs: 1, optimizer: adam"));
  constexpr std::int64_t whole = 65536 * 4;
  auto none = memory_of(folder, config, "none"), optimizer = memory_of(folder, config, "optimizer");
  auto gradients = memory_of(folder, config, "gradients"), parameters = memory_of(folder, config, "parameters");
  CHECK(none["optimizer state"] == 2 * whole);
  CHECK(none["parameters"] == whole);
  for (auto* shared : {&optimizer, &gradients, &parameters}) CHECK((*shared)["optimizer state"] == 2 * whole / 4);
  CHECK(optimizer["gradients"] >= whole);
  for (auto* shared : {&gradients, &parameters}) {
    CHECK((*shared)["gradients"] - whole / 4 == none["gradients"] - whole + 4);  // the sums, and that of the squares
  }
  CHECK(gradients["parameters"] == whole);
  CHECK(parameters["parameters"] == whole / 4);
}

TEST_CASE("a checkpoint of sharded ranks is gone on from by any number of ranks, sharded or not") {
  const Folder folder;
  const std::string config = folder.write("skips.yaml", job);
  const std::string directory = folder / "resumed";
  const auto until = [&](int epochs, int ranks, const std::string& shard) {
    const Finished run =
        trainctl(folder, {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory, "--progress", "none",
                          "--set", format("train.epochs={}", epochs), "--set", "strategy.shard=" + shard, "--set",
                          "strategy.bucket_size=1 kB", "--set", "strategy.first_bucket_size=200 B"});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
  };
  until(1, 4, "parameters");
  until(2, 3, "optimizer");
  until(3, 1, "none");
  const std::string whole = run_on(folder, config, 1, "none");
  const std::vector<Json> expected = events(whole, "epoch"), found = events(directory, "epoch");
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].at("train").at("loss").get<double>() ==
          Approx(expected[i].at("train").at("loss").get<double>()).epsilon(1e-4));
  }
  const Finished eval = trainctl(folder, {"eval", config, "--run", directory, "--json"});
  REQUIRE(eval.code == 0);
}

TEST_CASE("lamb and shard are refused together with the optimizer's line") {
  const Folder folder;
  const std::string config =
      folder.write("lamb.yaml", uneven_data + mlp_model + train_section("batch_size: 20, epochs: 1, optimizer: lamb") +
                                    "strategy: {shard: optimizer}\n");
  const Finished check = trainctl(folder, {"check", config, "--ranks", "2"});
  CHECK(check.code == 2);
  CHECK(contains(check.out + check.errors, "lamb.yaml:12:"));
  CHECK(contains(check.out + check.errors, "the optimizer takes norms of whole parameters, and ranks hold parts of"));
}

}  // namespace
}  // namespace trainctl::test
