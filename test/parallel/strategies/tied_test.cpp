// Tests tied embeddings, compared with sums in float64: a table that is read by an embedding and, transposed, by the
// product at the end of the network, on ranks that hold shards of it.
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "core/backend/choices.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/base/format.h"
#include "core/exec/engine.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/embedding.h"
#include "core/graph/passes/differentiate.h"
#include "core/program/parameter_layout.h"
#include "parallel/mesh/axes.h"
#include "parallel/strategies/table.h"
#include "test/catch.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::tied_test {
namespace {

constexpr std::int64_t samples = 4, positions = 6, tokens = 64, width = 16, rows = samples * positions;
constexpr double tolerance = 1e-4;

// The network: embedding, dense layer without a bias, product with the transposed table. Its loss is half the sum of
// the squares of the output, whose gradient is the output itself.
struct Tied {
  std::vector<std::int32_t> numbers;
  std::vector<float> table, kernel;

  Tied() : table(tokens * width), kernel(width * width) {
    std::mt19937 random(23);
    std::normal_distribution<float> normal(0, 0.5f);
    for (std::int64_t i = 0; i < rows; ++i) numbers.push_back(static_cast<std::int32_t>(random() % tokens));
    for (float& value : table) value = normal(random);
    for (float& value : kernel) value = normal(random);
  }

  Graph graph() const {
    Graph graph{.batch = samples, .training = true};
    const auto add = [&](const std::string& name, TensorType type, Role role) {
      Tensor tensor;
      tensor.name = name;
      tensor.type = std::move(type);
      tensor.role = role;
      return graph.add_tensor(std::move(tensor));
    };
    const TensorId x = add("tokens", {{samples, positions}, DType::int32}, Role::input);
    const TensorId t = add("table", {{tokens, width}, DType::float32}, Role::parameter);
    const TensorId k = add("kernel", {{width, width}, DType::float32}, Role::parameter);
    graph.inputs = {x};
    for (const TensorId id : {t, k}) graph.parameters.push_back({.tensor = id});
    const TensorId e = graph.add_op(std::make_shared<Embedding>(DType::float32), {x, t}, "embedding", {})[0];
    const TensorId h = graph.add_op(std::make_shared<Dense>(), {e, k}, "dense", {})[0];
    graph.outputs = graph.add_op(std::make_shared<DenseGradInput>(), {h, t}, "logits", {});
    return graph;
  }

  // The gradients of table and kernel, by name.
  std::map<std::string, std::vector<double>> gradients() const {
    std::vector<double> hidden(rows * width), dhidden(rows * width), by_table(table.size()), by_kernel(kernel.size());
    const auto at = [](const auto& values, std::int64_t i) { return double(values[static_cast<std::size_t>(i)]); };
    const auto embedded = [&](std::int64_t row, std::int64_t c) { return at(table, at(numbers, row) * width + c); };
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t c = 0; c < width; ++c) {
        double& sum = hidden[static_cast<std::size_t>(row * width + c)];
        for (std::int64_t i = 0; i < width; ++i) sum += embedded(row, i) * at(kernel, i * width + c);
      }
      for (std::int64_t token = 0; token < tokens; ++token) {
        double logit = 0;
        for (std::int64_t c = 0; c < width; ++c) logit += at(hidden, row * width + c) * at(table, token * width + c);
        for (std::int64_t c = 0; c < width; ++c) {
          dhidden[static_cast<std::size_t>(row * width + c)] += logit * at(table, token * width + c);
          by_table[static_cast<std::size_t>(token * width + c)] += logit * at(hidden, row * width + c);
        }
      }
      for (std::int64_t i = 0; i < width; ++i) {
        double sum = 0;
        for (std::int64_t c = 0; c < width; ++c) {
          const double dh = at(dhidden, row * width + c);
          by_kernel[static_cast<std::size_t>(i * width + c)] += embedded(row, i) * dh;
          sum += dh * at(kernel, i * width + c);
        }
        by_table[static_cast<std::size_t>(at(numbers, row) * width + i)] += sum;
      }
    }
    return {{"table", by_table}, {"kernel", by_kernel}};
  }
};

// Copies the shard of a tensor that the rank holds.
void copy_shard(const Shape& shape, const TensorExtent& extent, const std::vector<float>& whole, const View& shard) {
  const View view{const_cast<float*>(whole.data()), DType::float32, shape.count()};
  copy_common(shape, TensorExtent(), view, extent, shard);
}

struct Found {
  double largest = 0;     // difference from the expected gradient, relative to the largest value of the tensor
  int split_tensors = 0;  // number of tensors of which the rank holds a shard
};

Found run(const Tied& tied, Communicator& world) {
  const Mesh mesh{.tensor = world.size()};
  Strategy strategy{mesh, {}, false};
  Graph graph = split_layers(tied.graph(), MeshRank(mesh, world.rank()), strategy);
  Backward backward = differentiate(graph, graph.outputs, false);
  Program program;
  program.name = "tied";
  program.flat = order_parameters(graph, backward, {}, [](const GraphParameter&) { return false; });
  program.tensors = graph.tensors;
  program.flat.assign_offsets(program.tensors);
  program.batch.inputs = graph.inputs;
  program.micro_batch_samples = samples;
  program.step.learning_rate = program.add("learning_rate", {}, DType::float32, Role::scalar);
  program.segments = {{Phase::forward, {}, graph.ops}, {Phase::backward, {}, backward.ops}};
  program.schedule = {{0, 0, 0}, {1, 0, 0}};
  const auto backend = make_cpu_backend({});
  MeshAxes axes(world, mesh, true);
  KernelChoices choices;
  Engine engine(*backend, axes.communicators(), compile({program}, *backend, choices));
  for (const NamedTensor& tensor : engine.weights()) {
    copy_shard(tensor.shape, tensor.extent, tensor.name == "table" ? tied.table : tied.kernel, tensor.view);
  }
  engine.upload();
  std::vector<std::int32_t> numbers = tied.numbers;
  Batch batch;
  batch.inputs = {{numbers.data(), DType::int32, rows}};
  batch.count = samples;
  StepResult result;
  for (int step = 0; step < 3; ++step) engine.run(0, batch, {}, result);  // every step computes the same

  Found found;
  const auto expected = tied.gradients();
  for (const FlatEntry& entry : program.flat.parameters) {
    const Tensor& tensor = program.tensor(entry.parameter);
    const Shape whole = tensor.shard ? tensor.shard->whole : tensor.type.shape;
    const TensorExtent extent = tensor.shard ? tensor.shard->extent : TensorExtent();
    found.split_tensors += tensor.shard.has_value();
    std::vector<std::byte> bytes;
    engine.read_tensor(0, entry.gradient, bytes);
    std::vector<float> gradient(static_cast<std::size_t>(entry.count)), wanted(gradient.size());
    std::memcpy(gradient.data(), bytes.data(), gradient.size() * sizeof(float));
    const std::vector<double>& values = expected.at(tensor.name);
    const std::vector<float> rounded(values.begin(), values.end());
    copy_shard(whole, extent, rounded, {wanted.data(), DType::float32, entry.count});
    double scale = 0;
    for (const double value : values) scale = std::max(scale, std::abs(value));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      found.largest = std::max(found.largest, std::abs(double(gradient[i]) - wanted[i]) / scale);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("a table that is read twice, once transposed, is split for both uses and gets the sum of both gradients") {
  const Tied tied;
  for (const int ranks : {1, 2, 4}) {
    std::vector<Found> found(static_cast<std::size_t>(ranks));
    const auto errors = on_threads(
        ranks, [&](Communicator& world) { found[static_cast<std::size_t>(world.rank())] = run(tied, world); });
    for (const std::string& error : errors) CHECK(error == "");
    for (const Found& of_rank : found) {
      CAPTURE(ranks, of_rank.largest);
      CHECK(of_rank.largest < tolerance);
      CHECK(of_rank.split_tensors == (ranks == 1 ? 0 : 2));
    }
  }
}

}  // namespace trainctl::tied_test
