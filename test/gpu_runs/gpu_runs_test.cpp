// Compares whole runs of one rank on an emulated GPU with runs on the CPU and with each other. scripts/gpu-check uses
// real GPUs.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/gpu_runs/results.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/files.h"

namespace trainctl::test::gpu_runs_test {
namespace {

// A network with every family of layers. An epoch has 9 steps, the last of which has 3 samples.
const std::string network = R"(
data: {dataset: synthetic, samples: 131, shape: [8, 8, 3], classes: 5, validation: {samples: 37}}
log: {every: 1 steps}
model:
  layers:
    - conv2d: {name: first, filters: 8, kernel_size: 3, padding: same, use_bias: false}
    - batch_normalization: {momentum: 0.9}
    - activation: relu
    - residual:
        layers:
          - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
          - dropout: 0.2
          - conv2d: {filters: 8, kernel_size: 1}
        activation: relu
    - max_pooling2d: {pool_size: 2}
    - flatten
    - dense: {units: 16, activation: tanh}
    - dense: {units: 5, activation: softmax}
)";

const std::string training = train_section(
    "batch_size: 16, epochs: 6, max_steps: 50, optimizer: {name: sgd, learning_rate: 0.05, momentum: 0.9}, clip_norm: "
    "5");

// Runs the network to the end, in the directory folder/name.
Finished finish(const Folder& folder, const std::string& name, const std::string& device,
                const std::vector<std::string>& more = {}) {
  const std::string config = folder.write("network.yaml", network + training), directory = folder / name;
  std::vector<std::string> arguments{"run",  config,      "--ranks", "1",          "--device",
                                     device, "--run-dir", directory, "--progress", "none"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Finished finished = trainctl(folder, arguments);
  INFO(tail(finished.errors));
  REQUIRE(finished.code == 0);
  CHECK_FALSE(contains(finished.errors, "without a CUDA graph"));
  return finished;
}

// Runs the network like finish(), and returns the run directory.
std::string run(const Folder& folder, const std::string& name, const std::string& device,
                const std::vector<std::string>& more = {}) {
  finish(folder, name, device, more);
  return folder / name;
}

// Tolerances are relative to the loss, or to the first loss if the loss has fallen far.
void compare(const std::string& cpu, const std::string& gpu, double tolerance) {
  const std::vector<double> expected = losses(cpu), found = losses(gpu);
  REQUIRE(expected.size() == 50);
  REQUIRE(found.size() == 50);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    CAPTURE(gpu, step);
    CHECK(found[step] == Approx(expected[step]).epsilon(tolerance).margin(tolerance * expected.front()));
  }
  CHECK(expected.back() < 0.9 * expected.front());
  CHECK(contains(events(gpu, "start").front().at("device").get<std::string>(), "CUDA"));
  CHECK_FALSE(contains(events(cpu, "start").front().at("device").get<std::string>(), "CUDA"));
}

TEST_CASE("50 steps on a GPU have the same losses as on the CPU") {
  const Folder folder;
  compare(run(folder, "cpu", "cpu"), run(folder, "gpu", "cuda"), 1e-3);
}

// bfloat16 keeps 8 bits: each stored value differs by up to 0.4 %, and the differences add up over 50 steps. float16
// keeps 11 bits.
TEST_CASE("50 steps in half precision on a GPU have the same losses as in float32 on the CPU") {
  const Folder folder;
  const std::string cpu = run(folder, "cpu", "cpu");
  compare(cpu, run(folder, "bfloat16", "cuda", {"--set", "train.precision=bfloat16"}), 0.02);
  compare(cpu, run(folder, "float16", "cuda", {"--set", "train.precision=float16"}), 0.01);
}

TEST_CASE("micro-batches on a GPU have the same losses as on the CPU") {
  const Folder folder;
  // There are only full batches, since micro-batches must divide a share.
  const std::vector<std::string> settings{"--set", "train.gradient_accumulation=4", "--set", "data.samples=144"};
  compare(run(folder, "cpu", "cpu", settings), run(folder, "gpu", "cuda", settings), 1e-3);
}

TEST_CASE("a GPU computes the same bits each time, with and without CUDA graphs") {
  const Folder folder;
  const std::vector<std::string> set{"--set", "train.deterministic=true"};
  const std::string once = hash(run(folder, "once", "cuda", set));
  CHECK(hash(run(folder, "twice", "cuda", set)) == once);
  CHECK(hash(run(folder, "singly", "cuda",
                 {"--set", "train.deterministic=true", "--set", "train.cuda_graphs=false"})) == once);
}

TEST_CASE(
    "a run continues from a checkpoint on the other device, and computes the same bits if it continues on a GPU") {
  const Folder folder;
  const std::string config = folder.write("network.yaml", network + training);
  const std::string whole = run(folder, "whole", "cuda");
  const auto halves = [&](const std::string& first, const std::string& second) {
    const std::string half = run(folder, "half-" + first + second, first, {"--set", "train.max_steps=23"});
    return run(folder, "rest-" + first + second, second, {"--resume", half + "/checkpoints/last"});
  };
  CHECK(hash(halves("cuda", "cuda")) == hash(whole));
  const std::vector<double> expected = losses(whole);
  for (const auto& [first, second] : {std::pair{"cpu", "cuda"}, std::pair{"cuda", "cpu"}}) {
    const std::vector<double> rest = losses(halves(first, second));
    CAPTURE(first, second);
    REQUIRE(rest.size() == 27);
    for (std::size_t i = 0; i < rest.size(); ++i) CHECK(rest[i] == Approx(expected[23 + i]).epsilon(1e-3));
  }
}

TEST_CASE("float16's loss scale continues from a checkpoint") {
  const Folder folder;
  const std::string set = "train.precision=float16";
  const std::string whole = run(folder, "whole", "cuda", {"--set", set});
  const std::string half = run(folder, "half", "cuda", {"--set", set, "--set", "train.max_steps=23"});
  CHECK(contains(read_file(half + "/checkpoints/last/manifest.json"), "loss_scale"));
  const std::string rest = run(folder, "rest", "cuda", {"--set", set, "--resume", half + "/checkpoints/last"});
  CHECK(hash(rest) == hash(whole));
}

// The network has one weight w, whose gradient is 2 (w - 5000) in each step. Each step of Adam then changes w by the
// learning rate, if the averages of the gradients and of their squares are corrected by the number of updates. The
// gradient times 1024, the first loss scale, exceeds float16's range.
TEST_CASE("the optimizer does not count steps that overflow in float16, before and after a resume") {
  const Folder folder;
  folder.write("x.npy", npy("<f4", "(8, 1)", raw(std::vector<float>(8, 1))));
  folder.write("y.npy", npy("<f4", "(8, 1)", raw(std::vector<float>(8, 5000))));
  const std::string config = folder.write("overflow.yaml", R"(
data: {dataset: npy, x: x.npy, y: y.npy}
log: {every: 1 steps}
model: {layers: [{dense: {name: only, units: 1, use_bias: false, kernel_initializer: zeros}}]}
train:
  batch_size: 4
  epochs: 100
  loss: mean_squared_error
  precision: float16
  optimizer: {name: adam, learning_rate: 0.5}
)");
  const auto train = [&](const std::string& name, int steps, const std::string& resume = "never") {
    const Finished run =
        trainctl(folder, {"run", config, "--ranks", "1", "--device", "cuda", "--run-dir", folder / name, "--set",
                          format("train.max_steps={}", steps), "--resume", resume});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    return folder / name;
  };
  const auto weight = [](const std::string& directory) {
    return static_cast<double>(*load_named_checkpoint(directory).snapshot.weights.at(0).view.as<float>());
  };
  const std::string whole = train("whole", 16);
  int left_out = 0;
  for (const Json& step : events(whole, "step")) left_out += step.at("gradient_norm").is_number() ? 0 : 1;
  REQUIRE(left_out >= 6);
  REQUIRE(left_out <= 10);
  CHECK(weight(whole) == Approx(0.5 * (16 - left_out)).epsilon(1e-3));
  CHECK(weight(train("first", left_out + 1)) == Approx(0.5).epsilon(1e-5));
  for (const int part : {3, left_out + 2}) {
    const std::string half = train(format("half-{}", part), part);
    CHECK(hash(train(format("rest-{}", part), 16, half + "/checkpoints/last")) == hash(whole));
  }
}

TEST_CASE("vision transformers, ConvNeXts and MLP-Mixers on a GPU have the same losses as on the CPU") {
  const std::string preset = GENERATE(
      "{preset: vit_s16, with: {classes: 5, patch: 8, layers: 2, heads: 2, head_size: 8, width: 16, mlp: 24, dropout: "
      "0.1, stochastic_depth: 0.1}}",
      "{preset: convnext_tiny, with: {classes: 5, depth_1: 1, depth_2: 1, depth_3: 1, depth_4: 1, width_1: 4, width_2: "
      "6, width_3: 8, width_4: 12, mlp_1: 8, mlp_2: 8, mlp_3: 8, mlp_4: 8, layer_scale: 0.5}}",
      "{preset: mlp_mixer, with: {classes: 5, patch: 8, patches: 16, layers: 2, width: 12, patches_mlp: 8, mlp: 24}}");
  CAPTURE(preset);
  const Folder folder;
  const std::string config = folder.write("vision.yaml", R"(
data: {dataset: synthetic, samples: 16, shape: [32, 32, 3], classes: 5, validation: {samples: 6}}
log: {every: 1 steps}
model: )" + preset + "\n" + train_section("batch_size: 6, epochs: 2, optimizer: {name: adam, learning_rate: 1e-3}"));
  const auto losses_on = [&](const std::string& device, const std::string& precision) {
    const std::string directory = folder / (device + precision);
    const Finished finished =
        trainctl(folder, {"run", config, "--ranks", "1", "--device", device, "--run-dir", directory, "--progress",
                          "none", "--set", "train.precision=" + precision});
    INFO(tail(finished.errors));
    REQUIRE(finished.code == 0);
    return losses(directory);
  };
  const std::vector<double> cpu = losses_on("cpu", "float32");
  REQUIRE(cpu.size() == 6);
  for (const auto& [precision, tolerance] : {std::pair{"float32", 1e-3}, {"bfloat16", 0.02}}) {
    const std::vector<double> gpu = losses_on("cuda", precision);
    REQUIRE(gpu.size() == cpu.size());
    for (std::size_t step = 0; step < cpu.size(); ++step) CHECK(gpu[step] == Approx(cpu[step]).epsilon(tolerance));
  }
}

// Large inputs are copied from the loader's own memory.
TEST_CASE("large batches on a GPU are the same as on the CPU") {
  const Folder folder;
  const std::string config = folder.write("large.yaml", R"(
data: {dataset: synthetic, samples: 330, shape: [64, 64, 3], classes: 5, validation: {samples: 37}}
log: {every: 1 steps}
model:
  layers:
    - flatten
    - dense: {units: 5, activation: softmax}
)" + train_section("batch_size: 40, epochs: 2, optimizer: {name: sgd, learning_rate: 1e-4}"));
  const auto losses_on = [&](const std::string& device) {
    const std::string directory = folder / device;
    const Finished finished = trainctl(
        folder, {"run", config, "--ranks", "1", "--device", device, "--run-dir", directory, "--progress", "none"});
    INFO(tail(finished.errors));
    REQUIRE(finished.code == 0);
    return losses(directory);
  };
  const std::vector<double> cpu = losses_on("cpu"), gpu = losses_on("cuda");
  REQUIRE(cpu.size() == 18);
  REQUIRE(gpu.size() == 18);
  for (std::size_t step = 0; step < cpu.size(); ++step) CHECK(gpu[step] == Approx(cpu[step]).epsilon(1e-3));
}

TEST_CASE("steps with time marks are recorded as CUDA graphs, too, if earlier steps had no marks") {
  const Folder folder;
  const std::string config = folder.write("network.yaml", network + training);
  const Finished finished =
      trainctl(folder, {"bench", "step", config, "--ranks", "1", "--seconds", "0.2", "--set", "cluster.device=cuda"});
  INFO(tail(finished.errors));
  CHECK(finished.code == 0);
  CHECK_FALSE(contains(finished.errors, "without a CUDA graph"));
}

TEST_CASE("the times of kernels are logged and recorded, and a damaged record is renamed and reported") {
  const Folder folder;
  const std::string log = finish(folder, "first", "cuda", {"-v"}).errors;
  CHECK(contains(log, "timed conv2d_grad_weights 'first' ("));
  CHECK(contains(log, ": cudnn engine 0:: "));
  CHECK(contains(log, " ms\n"));
  CHECK_FALSE(contains(log, "not timed"));
  CHECK_FALSE(contains(log, "left out"));
  CHECK_FALSE(contains(finish(folder, "second", "cuda", {"-v"}).errors, "timed "));
  std::string kept;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path())) {
    const std::string name = file.path().filename();
    // The CPU has a record of its own.
    if (name.starts_with("kernels-") && contains(read_file(file.path()), "engine ")) kept = file.path();
  }
  REQUIRE(!kept.empty());
  const std::string text = read_file(kept), damaged = text.substr(0, text.size() - 7);
  std::ofstream(kept) << damaged;
  const std::string messages = finish(folder, "third", "cuda", {"-v"}).errors;
  CHECK(contains(messages, kept + " is damaged: "));
  CHECK(contains(messages, "timed conv2d_grad_weights 'first' ("));
  CHECK(read_file(kept + ".damaged") == damaged);
  CHECK(read_file(kept).size() > damaged.size());
}

// Returns the numbers of nodes of the CUDA graphs that a run of the network on a GPU recorded. The libraries'
// heuristics choose its kernels: timings could choose different kernels, with different numbers of nodes, each time.
std::set<int> recorded_nodes(const std::string& ranks) {
  const Folder folder;
  const std::string config = folder.write("network.yaml", network + training);
  const Finished finished = trainctl(
      folder, {"run", config, "-v", "--ranks", ranks, "--device", "cuda", "--progress", "none", "--set",
               "train.max_steps=18", "--set", "train.kernel_timing=false", "--set", "cluster.communication=staged"});
  INFO(tail(finished.errors));
  REQUIRE(finished.code == 0);
  std::set<int> nodes;
  std::istringstream lines(finished.errors);
  const std::string before = "recorded a CUDA graph of ";
  for (std::string line; std::getline(lines, line);) {
    if (const auto at = line.find(before); at != std::string::npos) {
      nodes.insert(std::stoi(line.substr(at + before.size())));
    }
  }
  return nodes;
}

// A node is a kernel, a call of a library or a group of copies; each costs the GPU a launch.
TEST_CASE("a step on a GPU is recorded with only the nodes that its ops need") {
  constexpr int batch = 1 + 1;                                       // the copy; the normalisation of bytes
  constexpr int results = 1;                                         // the copy
  constexpr int loss = 1 + 1, metric = 1, dropout = 1, pooling = 1;  // loss: the loss and the number of samples
  constexpr int residual = 1;                                        // the sum; the pooling computes its ReLU
  constexpr int convolution = 3;                                     // with the bias
  constexpr int batch_norm = 1;                                      // with the ReLU
  constexpr int dense = 2 + 1;                                       // with the bias; the tanh
  constexpr int relu = 1, softmax = 1;  // fused into the convolution and the loss in training
  constexpr int evaluation =
      batch + convolution + batch_norm + relu + residual + pooling + dense + softmax + loss + metric + results;

  constexpr int forward = batch + convolution + batch_norm + residual + dropout + pooling + dense + loss + metric;
  constexpr int statistics = 1 + 1 + 1;      // of the batch; its number of samples; sums for the moving statistics
  constexpr int dense_gradient = 2 + 2 + 1;  // of kernels with biases, of inputs, of the tanh
  constexpr int relu_gradient = 1;           // of the convolution
  constexpr int convolution_gradient = 3 * 2 + 2 + 2;  // of kernels, and their transposes; of inputs; of biases
  constexpr int batch_norm_gradient = 1 + 1;           // sums, then by the input
  constexpr int backward =
      dense_gradient + pooling + relu_gradient + dropout + convolution_gradient + batch_norm_gradient;
  constexpr int agreement = 1;       // whether all values are finite, and whether a rank stops
  constexpr int update = 1 + 1 + 1;  // the norm, the optimizer, the moving statistics
  CHECK(recorded_nodes("1") == std::set{evaluation, forward + statistics + backward + agreement + update + results});

  // With staged communication, ranks exchange data between two graphs; marks measure the times of a step's phases.
  CHECK(recorded_nodes("2") ==
        std::set{evaluation + 3, forward + statistics + backward + agreement + 4, update + results + 2});
}

TEST_CASE("a NaN on a GPU is found in its tensor") {
  const Folder folder;
  const std::string config = folder.write("network.yaml", network + training);
  const Finished finished = trainctl(folder, {"run", config, "--ranks", "1", "--device", "cuda", "--progress", "none",
                                              "--set", "train.optimizer.learning_rate=1e30"});
  CHECK(finished.code == 4);
  CHECK(contains(finished.errors, "training diverged at step"));
  CHECK(contains(finished.errors, "the first tensor that is not finite is"));
}

}  // namespace
}  // namespace trainctl::test::gpu_runs_test
