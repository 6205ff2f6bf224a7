// Ranks that share layers learn what one rank learns, exchange what they must and no more, and hold parts that make the
// whole.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <random>

#include "core/backend/choices.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/base/format.h"
#include "core/exec/engine.h"
#include "core/graph/ops/collectives.h"
#include "core/layers/model.h"
#include "parallel/mesh/axes.h"
#include "parallel/strategies/pipeline/stages.h"
#include "parallel/strategies/rendezvous/communications.h"
#include "parallel/trainer/initial_weights.h"
#include "parallel/trainer/programs.h"
#include "test/catch.h"
#include "test/comm/on_threads.h"
#include "test/program/job.h"

using namespace trainctl;

namespace {

constexpr std::int64_t batch = 12;
constexpr int steps = 30;

constexpr const char* mlp = R"(layers:
  - flatten
  - dense: {name: first, units: 48, activation: relu}
  - dropout: {name: drop, rate: 0.3}
  - dense: {name: second, units: 36, activation: tanh}
  - dense: {name: third, units: 40, activation: gelu}
  - layer_normalization
  - dense: {name: last, units: 3, activation: softmax}
)";
// Skips around a pair of convolutions, and from one part to the other.
constexpr const char* cnn = R"(layers:
  - conv2d: {name: c1, filters: 16, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization: {name: n1, momentum: 0.9}
  - activation: relu
  - residual:
      name: block
      layers:
        - conv2d: {name: a, filters: 16, kernel_size: 3, padding: same}
        - batch_normalization: {momentum: 0.9}
        - activation: relu
        - dropout: 0.2
        - conv2d: {name: b, filters: 16, kernel_size: 3, padding: same}
        - batch_normalization: {momentum: 0.9}
      activation: relu
  - max_pooling2d: {name: pooled, pool_size: 2}
  - conv2d: {name: wide, filters: 24, kernel_size: 3, padding: same, activation: silu}
  - concatenate: {from: [pooled, wide]}
  - average_pooling2d: {pool_size: 2}
  - conv2d: {name: tall, filters: 32, kernel_size: 2, padding: valid, activation: relu}
  - flatten
  - dense: {units: 3, activation: softmax}
)";
constexpr const char* two_inputs = R"(inputs: [a, b]
layers:
  - dense: {name: left, from: a, units: 48, activation: relu}
  - dense: {name: right, from: b, units: 48, activation: tanh}
  - add: {name: both, from: [left, right]}
  - dense: {name: hidden, units: 32, activation: relu}
  - dense: {units: 3, activation: softmax}
)";
constexpr const char* sequence = R"(layers:
  - embedding: {input_dim: 11, output_dim: 16}
  - dense: {name: wide, units: 64, activation: relu}
  - dense: {units: 11, activation: softmax}
)";

// The classes of the last layer are split, and the loss works on parts.
constexpr const char* classes = R"(layers:
  - flatten
  - dense: {name: hidden, units: 127, activation: tanh}
  - dense: {name: last, units: 80, activation: softmax}
)";

// What is trained: a network, and random samples of its inputs' shapes.
struct Network {
  Job job;
  std::vector<std::vector<float>> inputs;  // of all samples; tokens as their bits
  std::vector<std::int32_t> targets;
  std::vector<float> weights;
  std::vector<std::int64_t> numbers;
  std::int64_t targets_each = 1;

  Network(const char* text, std::vector<ModelInput> of, const std::string& optimizer) : job(text, optimizer) {
    job.spec.inputs = std::move(of);
    std::mt19937 random(17);
    std::normal_distribution<float> normal;
    const ModelInput& first = job.spec.inputs[0];
    const bool tokens = first.format.dtype == DType::int32;
    if (tokens) targets_each = first.sample.count();
    for (const ModelInput& input : job.spec.inputs) {
      std::vector<float>& values = inputs.emplace_back();
      for (std::int64_t i = 0; i < batch * input.sample.count(); ++i) {
        values.push_back(tokens ? std::bit_cast<float>(static_cast<std::int32_t>(random() % 11)) : normal(random));
      }
    }
    for (std::int64_t i = 0; i < batch * targets_each; ++i) {
      targets.push_back(static_cast<std::int32_t>(random() % (tokens ? 11 : 3)));
    }
    for (std::int64_t i = 0; i < batch; ++i) {
      weights.push_back(i == 5 ? 0.0f : 1.0f);  // a skipped sample
      numbers.push_back(100 + i);
    }
  }
  Batch share(const MeshRank& rank) {
    const Share share = share_of(batch, rank);
    Batch part;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ModelInput& input = job.spec.inputs[i];
      const std::int64_t each = input.sample.count();
      part.inputs.push_back(
          View{inputs[i].data(), input.format.dtype, batch * each}.part(share.first * each, share.count * each));
    }
    part.targets = {View{targets.data(), DType::int32, batch * targets_each}.part(share.first * targets_each,
                                                                                  share.count * targets_each)};
    part.weights = View{weights.data(), DType::float32, batch}.part(share.first, share.count);
    part.samples = View{numbers.data(), DType::int64, batch}.part(share.first, share.count);
    part.count = share.count;
    return part;
  }
};

ModelInput input_of(const std::string& name, Shape sample, DType dtype = DType::float32) {
  ModelInput input;
  input.name = name;
  input.sample = std::move(sample);
  input.format.dtype = dtype;
  return input;
}

struct Case {
  const char* name;
  std::function<Network()> make;
  double learning_rate;
};
const Case cases[] = {
    {"mlp",
     [] {
       return Network(mlp, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9, weight_decay: 1e-2}");
     },
     0.05},
    {"cnn",
     [] {
       return Network(cnn, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9, nesterov: true}");
     },
     0.02},
    {"two inputs",
     [] {
       return Network(two_inputs, {input_of("a", {40}), input_of("b", {30})}, "{name: adam, epsilon: 1e-3}");
     },
     0.003},
    {"sequence", [] { return Network(sequence, {input_of("", {6}, DType::int32)}, "{name: rmsprop, epsilon: 1e-2}"); },
     0.01},
    {"classes",
     [] {
       return Network(classes, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9}");
     },
     0.005},
};

struct Outcome {
  std::vector<double> losses, accuracies, norms;
  std::map<std::string, std::vector<float>> weights, state;  // whole
  std::map<std::string, int> parts;                          // how many ranks of a replica hold parts of it
};

void gather(std::span<const NamedTensor> tensors, std::map<std::string, std::vector<float>>& whole,
            std::map<std::string, int>& parts) {
  for (const NamedTensor& tensor : tensors) {
    std::vector<float>& values = whole[tensor.name];
    values.resize(static_cast<std::size_t>(tensor.shape.count()), std::nanf(""));
    const View all{values.data(), DType::float32, tensor.shape.count()};
    copy_common(tensor.shape, tensor.extent, tensor.view, TensorExtent(), all);
    if (!tensor.extent.is_whole()) ++parts[tensor.name];
  }
}

Strategy strategy_of(const Mesh& mesh) {
  Strategy strategy{mesh, {}, false};
  strategy.options.tensor.value = mesh.tensor;
  return strategy;
}

// The ranks of a mesh, or one rank that processes the same micro-batches.
Outcome train(const Case& which, const Mesh& mesh, int micro_batches = 1) {
  Outcome outcome;
  std::mutex one_at_a_time;
  const auto run = [&](Communicator& world) {
    Network network = which.make();
    network.job.spec.clip_norm = 1;
    network.job.spec.seed = 3;
    const BatchSizes sizes{.training = batch, .gradient_accumulation = micro_batches};
    Reader reader;
    Strategy strategy = strategy_of(mesh);
    if (mesh.pipeline > 1) {
      const Graph graph = build_model(network.job.model, {.inputs = network.job.spec.inputs}, reader).graph;
      strategy.stages = assign_stages(graph, strategy.options, mesh.pipeline, byte_costs_of_processor, reader);
    }
    const RunPrograms programs(network.job.spec, strategy, sizes, world.rank(), reader);
    reader.throw_if_failed();
    const auto backend = make_cpu_backend({});
    KernelChoices choices;
    choices.stop_timing();  // the same kernels in every run
    const MeshAxes axes(world, mesh, true);
    Engine engine(*backend, axes.communicators(), compile(programs.programs(), *backend, choices));
    initialize_weights(network.job.spec, network.job.spec.seed, engine.weights());
    engine.upload();
    const Batch part = network.share(programs.rank());
    StepResult result;
    std::vector<double> losses, accuracies, norms;
    for (int step = 0; step < steps; ++step) {
      engine.run(programs.training(batch), part, {which.learning_rate, step, false}, result);
      losses.push_back(result.sums[0] / result.count);
      accuracies.push_back(result.sums[1]);
      norms.push_back(result.gradient_norm);
    }
    engine.download();
    const std::lock_guard lock(one_at_a_time);
    require(outcome.losses.empty() || outcome.losses == losses, "all ranks know the same losses");
    outcome.losses = losses;
    outcome.accuracies = accuracies;
    outcome.norms = norms;
    if (programs.rank().along(MeshAxis::data) != 0) return;
    gather(engine.weights(), outcome.weights, outcome.parts);
    gather(engine.state(), outcome.state, outcome.parts);
  };
  for (const std::string& error : on_threads(mesh.ranks(), run)) {
    if (!error.empty()) throw std::runtime_error(error);
  }
  return outcome;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = a.size() == b.size() ? 0 : 1e9;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = std::max(largest, std::isnan(difference) ? 1e9 : difference);
  }
  return largest;
}

Program training_of(const std::string& layers, int ranks, int rank = 0, const std::string& optimizer = "adam") {
  const Job job(layers, optimizer);
  Strategy strategy = strategy_of({1, 1, ranks});
  strategy.options.tensor.place = {"test.yaml", 7, 11};
  Reader reader;
  Program program = training_program(job.spec, 4, 1, reader, parallelism(strategy, rank));
  reader.throw_if_failed();
  return program;
}

// "forward all_reduce", "backward all_reduce", ...: what the layers' ops exchange.
std::vector<std::string> exchanges(const Program& program) {
  std::vector<std::string> found;
  for (const Communication& communication : communications_of(program)) {
    const Segment& segment = program.segment(communication.item.segment);
    if (segment.phase == Phase::update) continue;
    found.push_back(format("{} {} {}", name_of(segment), communication.op->def->kind(), communication.op->name));
  }
  return found;
}

std::string shape_of(const Program& program, const std::string& name) {
  for (const Tensor& tensor : program.tensors) {
    if (tensor.name == name) return to_string(tensor.type.shape);
  }
  return "none";
}

}  // namespace

TEST_CASE("ranks that share layers learn what one rank learns") {
  for (const Case& which : cases) {
    for (const Mesh& mesh : {Mesh{1, 1, 2}, Mesh{1, 1, 4}, Mesh{2, 1, 2}}) {
      CAPTURE(which.name, mesh.data, mesh.tensor);
      const Outcome reference = train(which, {1, 1, 1}, mesh.data), outcome = train(which, mesh);
      CHECK(reference.losses.back() < 0.9 * reference.losses.front());
      for (std::size_t step = 0; step < steps; ++step) {
        CAPTURE(step);
        CHECK(outcome.losses[step] == Approx(reference.losses[step]).epsilon(1e-4));
        CHECK(outcome.accuracies[step] == reference.accuracies[step]);
        CHECK(outcome.norms[step] == Approx(reference.norms[step]).epsilon(1e-3));
      }
      CHECK(reference.parts.empty());
      CHECK(outcome.parts.size() >= 4);
      for (const auto& [name, count] : outcome.parts) CHECK(count == mesh.tensor);
      REQUIRE(outcome.weights.size() == reference.weights.size());
      REQUIRE(outcome.state.size() == reference.state.size());
      for (const auto& [name, values] : reference.weights) {
        CAPTURE(name);
        CHECK(largest_difference(outcome.weights.at(name), values) < 2e-4);
      }
      for (const auto& [name, values] : reference.state) {
        CAPTURE(name);
        CHECK(largest_difference(outcome.state.at(name), values) < 2e-3);
      }
    }
  }
}

TEST_CASE("stages whose ranks share layers learn what one rank learns") {
  constexpr int micro_batches = 2;
  for (const Case& which : cases) {
    CAPTURE(which.name);
    const Outcome reference = train(which, {1, 1, 1}, micro_batches), outcome = train(which, {1, 2, 2}, micro_batches);
    for (std::size_t step = 0; step < steps; ++step) {
      CAPTURE(step);
      CHECK(outcome.losses[step] == Approx(reference.losses[step]).epsilon(1e-4));
      CHECK(outcome.accuracies[step] == reference.accuracies[step]);
      CHECK(outcome.norms[step] == Approx(reference.norms[step]).epsilon(1e-3));
    }
    CHECK(outcome.parts.size() >= 2);
    REQUIRE(outcome.weights.size() == reference.weights.size());
    REQUIRE(outcome.state.size() == reference.state.size());
    for (const auto& [name, values] : reference.weights) {
      CAPTURE(name);
      CHECK(largest_difference(outcome.weights.at(name), values) < 2e-4);
    }
  }
}

TEST_CASE("a pair of layers exchanges one sum forward and one backward") {
  constexpr const char* pair = R"(layers:
  - flatten
  - dense: {name: whole, units: 31, activation: relu}
  - dense: {name: columns, units: 64, activation: relu}
  - dense: {name: rows, units: 5, activation: softmax}
)";
  const Program program = training_of(pair, 2);
  CHECK(exchanges(program) == std::vector<std::string>{"forward all_reduce rows", "backward all_reduce columns"});
  CHECK(shape_of(program, "whole/kernel") == "128x31");
  CHECK(shape_of(program, "columns/kernel") == "31x32");
  CHECK(shape_of(program, "columns/bias") == "32");
  CHECK(shape_of(program, "rows/kernel") == "32x5");
  CHECK(shape_of(program, "rows/bias") == "5");
}

TEST_CASE("what needs all channels gathers them, once") {
  constexpr const char* layers = R"(layers:
  - conv2d: {name: c, filters: 16, kernel_size: 5, padding: same}
  - global_average_pooling2d: {name: mean}
  - layer_normalization: {name: norm}
  - concatenate: {from: [mean, norm]}
  - dense: {units: 3}
)";
  // The convolution's input needs no gradient; that of what was gathered is its own part.
  CHECK(exchanges(training_of(layers, 4)) == std::vector<std::string>{"forward all_gather_columns mean"});
}

TEST_CASE("a cross-entropy of split classes gathers sums of each row and no logits") {
  const Program program = training_of(classes, 4);
  CHECK(shape_of(program, "last/kernel") == "127x20");
  CHECK(exchanges(program) ==
        std::vector<std::string>{"backward all_gather_columns class_sums", "backward all_reduce last"});
  CHECK(shape_of(program, "class_sums/gathered") == "4x20");
  CHECK(shape_of(program, "last/output/gathered") == "none");
  // What is not computed from sums gathers the logits: another metric, and predictions.
  const Job job(classes, "adam", "categorical_crossentropy", "{name: top_k_categorical_accuracy, k: 3}");
  Reader reader;
  const Parallelism half = parallelism(strategy_of({1, 1, 2}), 1);
  const Program top_k = training_program(job.spec, 4, 1, reader, half);
  const Program evaluated = evaluation_program(job.spec, 4, reader, half);
  const Program predicted = prediction_program(job.spec, 4, reader, half);
  reader.throw_if_failed();
  CHECK(shape_of(top_k, "last/output/gathered") == "4x80");
  CHECK(shape_of(evaluated, "last/output/gathered") == "4x80");
  CHECK(shape_of(predicted, "last/gathered") == "4x80");
  CHECK(predicted.tensor(predicted.step.predictions[0]).type.shape == Shape{4, 80});
}

TEST_CASE("layers that are not worth it, or that the ranks do not divide, are whole on every rank") {
  constexpr const char* layers = R"(layers:
  - conv2d: {name: thin, filters: 4, kernel_size: 1}
  - layer_normalization
  - flatten
  - dense: {name: odd, units: 33, activation: relu}
  - dense: {name: even, units: 64, activation: relu}
  - dense: {name: last, units: 2}
)";
  const Program program = training_of(layers, 2);
  CHECK(shape_of(program, "thin/kernel") == "1x1x2x4");
  CHECK(shape_of(program, "odd/kernel") == "256x33");
  CHECK(shape_of(program, "even/kernel") == "33x32");
  CHECK(shape_of(program, "last/kernel") == "32x2");
}

TEST_CASE("parts of all ranks make the whole, and each gradient counts once in the norm") {
  for (const int rank : {0, 1, 2}) {
    const Program program = training_of(mlp, 3, rank);
    for (const FlatEntry& entry : program.flat.parameters) {
      const Tensor& tensor = program.tensor(entry.parameter);
      CAPTURE(rank, tensor.name);
      if (!tensor.part) continue;
      CHECK(tensor.part->extent.shape(tensor.part->whole).count() == tensor.type.shape.count());
      CHECK(tensor.type.shape.count() * 3 == tensor.part->whole.count());
      CHECK(tensor.placements[2].kind == Placement::Kind::split);
    }
  }
}

TEST_CASE("a network or an optimizer that cannot be split is refused with the config's line") {
  const auto refused = [](const std::string& layers, const std::string& optimizer = "adam") {
    try {
      training_of(layers, 2, 0, optimizer);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      return format("{} {}", error.place().line, error.what());
    }
    return std::string("accepted");
  };
  const std::string none = refused("layers: [flatten, {dense: {units: 3}}]");
  CHECK(none.starts_with("7 "));
  CHECK(none.find("no layer of this network can be split among 2 ranks") != std::string::npos);
  const std::string lamb = refused(mlp, "lamb");
  CHECK(lamb.find("norms of whole parameters") != std::string::npos);
  CHECK(refused(mlp) == "accepted");
}

TEST_CASE("the mesh leaves to data what layers are not shared by, and layers stay on one host") {
  StrategyOptions options;
  options.tensor.value = 2;
  CHECK(mesh_of(options, 2) == Mesh{1, 1, 2});
  CHECK(mesh_of(options, 6) == Mesh{3, 1, 2});
  for (const int ranks : {1, 3}) {
    CAPTURE(ranks);
    CHECK_THROWS_AS(mesh_of(options, ranks), Error);
  }
  options.data.stated = 2;
  CHECK(mesh_of(options, 4) == Mesh{2, 1, 2});
  CHECK_THROWS_AS(mesh_of(options, 6), Error);
  const Mesh mesh{2, 1, 2};
  CHECK_NOTHROW(require_layers_within_hosts(options, mesh, {"a", "a", "b", "b"}));
  CHECK_THROWS_AS(require_layers_within_hosts(options, mesh, {"a", "b", "b", "b"}), CollectiveError);
}
