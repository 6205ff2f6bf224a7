// Compares runs of several ranks on emulated GPUs with runs of one rank: strategies, transports, precisions, and ranks
// that share a GPU.
#include "core/base/error.h"
#include "core/base/format.h"
#include "test/catch.h"
#include "test/gpu_runs/results.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/files.h"

namespace trainctl::test::gpu_ranks_test {
namespace {

TEST_CASE("three ranks on one GPU, one of them without samples, learn from batches of two what one rank learns") {
  const Folder folder;
  const std::string config = folder.write("few.yaml", R"(
data: {dataset: synthetic, samples: 17, shape: [8, 8, 3], classes: 5, validation: {samples: 5}}
log: {every: 1 steps}
)" + mlp_model + train_section("batch_size: 2, epochs: 2, optimizer: {name: sgd, learning_rate: 0.05}"));
  const auto train_on = [&](const char* ranks, const char* device) {
    const std::string directory = folder / device;
    const Finished finished = trainctl(folder, {"run", config, "--ranks", ranks, "--device", device, "--run-dir",
                                                directory, "--set", "cluster.communication=staged"});
    INFO(tail(finished.errors));
    REQUIRE(finished.code == 0);
    return directory;
  };
  const std::string one = train_on("1", "cpu"), three = train_on("3", "cuda");
  CHECK(losses(one).size() == 18);
  REQUIRE(losses(three).size() == 18);
  for (std::size_t i = 0; i < 18; ++i) CHECK(losses(three)[i] == Approx(losses(one)[i]).epsilon(1e-3));
  CHECK(events(three, "epoch").back().at("validation").at("loss").get<double>() ==
        Approx(events(one, "epoch").back().at("validation").at("loss").get<double>()).epsilon(1e-3));
}

// How ranks on GPUs communicate, and in which precision they train.
struct Way {
  std::string communication, precision;
};

// Compares runs on `gpus` ranks, each with a GPU, with a run on one rank on the CPU. There is one run for each strategy
// (a list of settings) in each of the ways.
void compare_on_gpus(int gpus, const std::string& network_and_training,
                     const std::vector<std::vector<std::string>>& strategies, const std::vector<Way>& ways) {
  const Folder folder;
  const std::string config = folder.write(
      "network.yaml", uneven_data + network_and_training + "strategy: {bucket_size: 4 kB, first_bucket_size: 1 kB}\n");
  const auto train_on = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"run", config, "--progress", "none", "--run-dir", folder / name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Command run(folder, arguments, ".", {format("TRAINCTL_EMULATED_GPUS={}", gpus)});
    const int code = run.wait();
    INFO(tail(run.errors()));
    REQUIRE(code == 0);
    return losses(folder / name);
  };
  const std::vector<double> one = train_on("one", {"--ranks", "1", "--device", "cpu"});
  REQUIRE(one.size() == 12);
  int number = 0;
  for (const std::vector<std::string>& strategy : strategies) {
    for (const auto& [communication, precision] : ways) {
      CAPTURE(strategy, communication, precision);
      std::vector<std::string> arguments{"--ranks", std::to_string(gpus), "--device", "cuda"};
      for (const std::string& setting : strategy) arguments.insert(arguments.end(), {"--set", setting});
      arguments.insert(arguments.end(), {"--set", format("cluster.communication={}", communication), "--set",
                                         format("train.precision={}", precision)});
      const std::vector<double> many = train_on(std::to_string(++number), arguments);
      REQUIRE(many.size() == one.size());
      const double tolerance = precision == "float32" ? 1e-3 : 0.02;
      for (std::size_t i = 0; i < one.size(); ++i) CHECK(many[i] == Approx(one[i]).epsilon(tolerance));
    }
  }
}

const std::string adam =
    train_section("batch_size: 20, epochs: 2, clip_norm: 1, optimizer: {name: adam, learning_rate: 1e-3}");

TEST_CASE("ranks on GPUs learn what one rank learns if they share the update, with every transport and precision") {
  compare_on_gpus(2, mlp_model + adam,
                  {{"strategy.shard=optimizer"}, {"strategy.shard=gradients"}, {"strategy.shard=parameters"}},
                  {{"nccl", "float32"}, {"staged", "bfloat16"}});
}

TEST_CASE("ranks on GPUs learn what one rank learns if they gather parameters as bfloat16") {
  compare_on_gpus(2, mlp_model + adam,
                  {{"strategy={shard: optimizer, parameter_dtype: bfloat16}"},
                   {"strategy={shard: parameters, parameter_dtype: bfloat16}"}},
                  {{"nccl", "bfloat16"}, {"staged", "bfloat16"}});
}

TEST_CASE("ranks on GPUs learn what one rank learns if they split the network, with every transport and precision") {
  compare_on_gpus(2, skip_model + adam, {{"strategy.pipeline=2"}, {"strategy.tensor=2"}},
                  {{"nccl", "float32"}, {"staged", "float32"}, {"nccl", "bfloat16"}, {"staged", "float16"}});
}

TEST_CASE("ranks on GPUs learn what one rank learns if they split layers and replicas share the update") {
  compare_on_gpus(
      4, skip_model + adam,
      {{"strategy.tensor=2", "strategy.shard=optimizer"}, {"strategy.tensor=2", "strategy.shard=parameters"}},
      {{"nccl", "float32"}, {"staged", "bfloat16"}});
}

TEST_CASE(
    "with logical shards, any number of ranks on GPUs computes the same bits, with every transport and shard option") {
  const Folder folder;
  const std::string config = folder.write(
      "shards.yaml", uneven_data + skip_model +
                         "strategy: {reproducible: {shards: 8}, bucket_size: 2 kB, first_bucket_size: 1 kB}\n" +
                         train_section("batch_size: 24, epochs: 1, clip_norm: 1, optimizer: {name: adam}"));
  const auto learn = [&](const std::string& name, int ranks, int gpus, const std::vector<std::string>& settings,
                         std::vector<std::string> variables = {}) {
    CAPTURE(name);
    std::vector<std::string> arguments{"run",  config,      "--ranks",     std::to_string(ranks), "--device",
                                       "cuda", "--run-dir", folder / name, "--progress",          "none"};
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    variables.push_back(format("TRAINCTL_EMULATED_GPUS={}", gpus));
    Command run(folder, arguments, ".", variables);
    const int code = run.wait();
    INFO(tail(run.errors()));
    REQUIRE(code == 0);
    CHECK(losses(folder / name).size() == 5);
    return hash(folder / name);
  };
  const std::string one = learn("one", 1, 1, {});
  CHECK(learn("staged", 2, 1, {"cluster.communication=staged"}) == one);
  CHECK(learn("three", 3, 3, {"cluster.communication=nccl"}) == one);
  for (const std::string shard : {"optimizer", "gradients", "parameters"}) {
    CHECK(learn("nccl-" + shard, 2, 2, {"cluster.communication=nccl", "strategy.shard=" + shard}) == one);
  }
  CHECK(learn("shared", 3, 1, {"cluster.communication=staged", "strategy.shard=gradients"}) == one);
  const std::vector<std::string> sharing{"TRAINCTL_EMULATED_NCCL_VERSION=23000", "NCCL_MULTI_RANK_GPU_ENABLE=1"};
  CHECK(learn("shared-nccl", 2, 1, {"cluster.communication=nccl", "strategy.shard=gradients"}, sharing) == one);
}

TEST_CASE("two ranks share a GPU through NCCL only if its version and its variable allow it") {
  const Folder folder;
  const std::string config = folder.write("network.yaml", uneven_data + mlp_model + adam);
  const auto errors = [&](const std::string& version, const std::string& enabled, int code) {
    Command run(folder,
                {"run", config, "--ranks", "2", "--device", "cuda", "--run-dir", folder / (version + enabled), "--set",
                 "train.max_steps=2", "--set", "cluster.communication=nccl"},
                ".",
                {"TRAINCTL_EMULATED_GPUS=1", "TRAINCTL_EMULATED_NCCL_VERSION=" + version,
                 "NCCL_MULTI_RANK_GPU_ENABLE=" + enabled});
    CAPTURE(version, enabled);
    CHECK(run.wait() == code);
    return run.errors();
  };
  errors("23000", "1", 0);
  for (const auto& [version, enabled] : {std::pair{"22809", "1"}, std::pair{"23000", "0"}}) {
    const std::string refused = errors(version, enabled, exit_code(ErrorKind::config));
    CHECK(contains(refused, enabled == std::string("1") ? "ranks 0 and 1" : "2 ranks, but this host has 1 GPU"));
    CHECK(
        contains(refused, "NCCL 2.30 and later versions let ranks share a GPU if NCCL_MULTI_RANK_GPU_ENABLE=1 is set"));
  }
}

// NCCL allocates its buffers at the first message to a peer, when the memory of the run is already allocated.
TEST_CASE("memory that NCCL allocates at its first messages is kept free") {
  const Folder folder;
  const std::string config = folder.write("network.yaml", R"(
data: {dataset: synthetic, samples: 8, shape: [2048], classes: 5}
model:
  layers:
    - dense: {units: 2000, activation: relu}
    - dense: {units: 1000, activation: relu}
    - dense: {units: 5, activation: softmax}
strategy: {pipeline: 2}
)" + train_section("batch_size: 8, epochs: 1, gradient_accumulation: 2, optimizer: {name: sgd}"));
  constexpr std::int64_t buffers = 1000000;  // for the collectives of a communicator, and for each peer
  const auto run_with = [&](const std::string& name, std::int64_t gpu_bytes) {
    Command run(folder, {"run", config, "--ranks", "2", "--device", "cuda", "--run-dir", folder / name}, ".",
                {"TRAINCTL_EMULATED_GPUS=2", format("TRAINCTL_EMULATED_GPU_BYTES={}", gpu_bytes),
                 format("TRAINCTL_EMULATED_NCCL_BUFFERS={}", buffers)});
    const int code = run.wait();
    return Finished{code, run.out(), run.errors()};
  };
  const Finished roomy = run_with("roomy", std::int64_t{1} << 30);
  INFO(tail(roomy.errors));
  REQUIRE(roomy.code == 0);
  std::int64_t bytes = 2 * buffers;  // the pipeline's two communicators are connected before the memory is planned
  const Json memory = events(folder / "roomy", "start").front().at("memory");
  for (const auto& [name, part] : memory.items()) {
    if (name != "copies for checkpoints") bytes += part.get<std::int64_t>();
  }
  // The run would fit, but not together with the buffers for two peers.
  const Finished tight = run_with("tight", bytes + buffers);
  CHECK(tight.code == exit_code(ErrorKind::resource));
  CHECK(contains(tight.errors, "of memory (parameters"));  // refused before the first step
  const Finished enough = run_with("enough", bytes + 5 * buffers);
  INFO(tail(enough.errors));
  CHECK(enough.code == 0);
}

}  // namespace
}  // namespace trainctl::test::gpu_ranks_test
