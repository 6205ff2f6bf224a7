// Tests verify-scaling on real ranks: hashes are those of runs, the op of the first difference is found, and no files
// or processes are left.
#include <signal.h>

#include <filesystem>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::scaling_test {
namespace {

namespace fs = std::filesystem;

const std::string sgd = train_section("batch_size: 20, epochs: 5, optimizer: {name: sgd, learning_rate: 0.05}");

struct Verified {
  int code = 0;
  Json json;
  std::string errors;
};

Verified verify(const Folder& folder, const std::string& config, const std::string& ranks, int steps,
                const std::vector<std::string>& sets = {}) {
  std::vector<std::string> arguments{"verify-scaling",      config,  "--ranks", ranks, "--steps",
                                     std::to_string(steps), "--json"};
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  const Finished done = trainctl(folder, arguments);
  INFO(tail(done.errors));
  REQUIRE((done.code == 0 || done.code == 1));
  return {done.code, Json::parse(done.out), done.errors};
}

std::string hash_of_run(const Folder& folder, const std::string& config, int ranks, int steps) {
  const std::string directory = folder / format("run-{}", ranks);
  const Finished run = trainctl(folder, {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory,
                                         "--quiet", "--set", format("train.max_steps={}", steps)});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return events(directory, "end").at(0).at("weights_sha256");
}

bool left_nothing(const Folder& folder) { return fs::is_empty(folder / "temporary") && !fs::exists(folder / "runs"); }

TEST_CASE("verify-scaling prints the hashes that runs end with, and names the first difference") {
  const Folder folder;
  const std::string config = folder.write("mlp.yaml", uneven_data + mlp_model + sgd);
  const Verified found = verify(folder, config, "1,2,3", 8);  // the sixth step's batch has 3 samples
  CHECK(left_nothing(folder));
  CHECK(found.json.at("steps") == 8);
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    CHECK(found.json.at("hashes").at(std::to_string(ranks)) == hash_of_run(folder, config, ranks, 8));
  }
  CHECK(found.code == 1);
  CHECK(found.json.at("ok") == false);
  const Json& first = found.json.at("first_difference");
  INFO(first.dump(2));
  CHECK(first.at("ranks").at(0) == 1);
  CHECK(first.at("step").get<int>() >= 1);
  CHECK(first.at("step").get<int>() <= 8);
  CHECK_FALSE(first.at("tensor").get<std::string>().empty());
  CHECK(first.at("differing").get<int>() > 0);
  CHECK(first.at("largest_absolute").get<double>() < 1e-4);  // rounding
}

TEST_CASE("if updates are too small for a float32, the weights are the same on all ranks") {
  const Folder folder;
  const std::string config = folder.write("mlp.yaml", uneven_data + mlp_model + sgd);
  const Finished text = trainctl(folder, {"verify-scaling", config, "--ranks", "1,2,4", "--steps", "7", "--set",
                                          "train.optimizer={name: sgd, learning_rate: 1e-46}"});
  INFO(text.errors + text.out);
  CHECK(text.code == 0);
  CHECK(count(text.out, "equal") == 2);
  CHECK(contains(text.out, "after each of 7 steps"));
  CHECK(left_nothing(folder));
}

TEST_CASE("statistics of a rank's own samples are the first difference, in the first step and for every sample") {
  const Folder folder;
  const std::string config = folder.write("bn.yaml", uneven_data + batch_norm_model + sgd);
  const Verified found = verify(folder, config, "1,2", 3);
  CHECK(found.code == 1);
  const Json& first = found.json.at("first_difference");
  INFO(first.dump(2));
  CHECK(first.at("step") == 1);
  CHECK(first.at("phase") == "forward");
  CHECK(contains(first.at("op"), "batch_norm"));
  CHECK(first.at("samples").size() == 20);
  CHECK(first.at("elements").get<int>() % (20 * 8) == 0);
  CHECK(first.at("largest_absolute").get<double>() > 1e-3);
}

TEST_CASE("differences are found under every strategy") {
  const Folder folder;
  const std::string config = folder.write("skips.yaml", uneven_data + skip_model + sgd);
  const auto check = [&](const std::string& ranks, const std::vector<std::string>& sets, double largest = 1e-3) {
    CAPTURE(ranks, sets);
    const Verified found = verify(folder, config, ranks, 7, sets);
    if (found.code == 0) return;
    const Json& first = found.json.at("first_difference");
    INFO(first.dump(2));
    CHECK_FALSE(first.at("phase").get<std::string>().empty());
    CHECK(first.at("differing").get<int>() > 0);
    CHECK(first.at("largest_absolute").get<double>() < largest);
  };
  const std::string buckets = "strategy.bucket_size=1 kB", adam = "train.optimizer=adam";
  check("1,2", {"strategy.shard=optimizer", buckets, adam});
  check("1,3", {"strategy.shard=gradients", buckets, "train.gradient_accumulation=2", "train.batch_size=12"});
  check("1,2", {"strategy.shard=parameters", buckets});
  check("2,4", {"strategy.pipeline=2", "strategy.micro_batches=5"});
  check("2,4", {"strategy.tensor=2"});
  check("1,2", {"train.precision=bfloat16"}, 0.1);
  check("1,2", {"strategy.sync_every=2"}, 1);
  check("1,2", {"strategy.recompute=blocks"});
}

TEST_CASE("invalid requests are refused in one line, before anything runs") {
  const Folder folder;
  const std::string config = folder.write("mlp.yaml", uneven_data + mlp_model + sgd);
  const auto says = [&](std::vector<std::string> arguments, const std::string& words) {
    arguments.insert(arguments.begin(), {"verify-scaling", config});
    const Finished answer = trainctl(folder, arguments);
    CAPTURE(arguments, answer.errors);
    CHECK(answer.code == 2);
    CHECK(contains(answer.errors, words));
    CHECK(answer.out.empty());
  };
  says({"--ranks", "1,two"}, "'two' is not a number of ranks");
  says({"--ranks", "1,2,"}, "must be numbers of ranks");
  says({"--ranks", ""}, "--ranks");
  says({"--ranks", "0,1"}, "'0' is not a number of ranks");
  says({"--ranks", "2,2"}, "2 ranks are given twice");
  says({"--ranks", "2"}, "nothing to be compared with");
  says({"--steps", "0"}, "at least 1");
  says({"--steps", "-3"}, "at least 1");
  says({"--steps", "many"}, "at least 1");
  says({"--ranks", "2,3", "--set", "strategy.pipeline=2"}, "3 ranks");
  says({"--set", "train.epoch=3"}, "did you mean 'epochs'");
  const std::string each = folder.write(
      "each.yaml", uneven_data + mlp_model + train_section("batch_size_per_rank: 20, epochs: 5, optimizer: sgd"));
  const Finished refused = trainctl(folder, {"verify-scaling", each, "--json"});
  CHECK(refused.code == 2);
  CHECK(contains(Json::parse(refused.out).at("errors").at(0).at("message"), "set train.batch_size"));
  CHECK(left_nothing(folder));
}

TEST_CASE("the failure of a run is that of the command, with the same exit code") {
  const Folder folder;
  const std::string config = folder.write("skips.yaml", uneven_data + skip_model + sgd);
  const Finished diverged = trainctl(folder, {"verify-scaling", config, "--ranks", "2,1", "--json", "--set",
                                              "train.optimizer={name: sgd, learning_rate: 1e30}"});
  INFO(diverged.errors);
  CHECK(diverged.code == 4);
  const std::string message = Json::parse(diverged.out).at("errors").at(0).at("message");
  CHECK(contains(message, "the run on 2 ranks failed"));
  CHECK(contains(message, "diverged"));
  CHECK(left_nothing(folder));
}

TEST_CASE("Ctrl-C ends verify-scaling and its runs, and leaves nothing") {
  const Folder folder;
  const std::string config = folder.write(
      "endless.yaml", uneven_data + skip_model + train_section("batch_size: 20, epochs: 100000, optimizer: adam"));
  Command run(folder, {"verify-scaling", config, "--ranks", "2,1", "--steps", "400000"});
  REQUIRE(comes_true([&] { return run.ranks().size() == 2; }));
  run.send(SIGINT);
  CHECK(run.wait() == 130);
  CHECK(contains(run.errors(), "stopped at once"));
  CHECK(run.left_no_process());
  CHECK(left_nothing(folder));
}

}  // namespace
}  // namespace trainctl::test::scaling_test
