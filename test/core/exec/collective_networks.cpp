// Runs networks of matrix products and collectives. The loss is half the sum of the squares of the output, so that its
// gradient is the output itself; the weights' gradients then verify the forward and the backward pass.
#include "test/core/exec/collective_networks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <stdexcept>

#include "core/backend/choices.h"
#include "core/base/format.h"
#include "core/exec/engine.h"
#include "core/graph/graph.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/passes/differentiate.h"
#include "core/program/parameter_layout.h"
#include "parallel/mesh/axes.h"

namespace trainctl::collective_networks {
namespace {

constexpr std::int64_t width = 6;  // number of columns of every layer
constexpr std::int64_t rows = 4;   // number of one rank's samples

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;

  Matrix(std::int64_t r, std::int64_t c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
  double& at(std::int64_t r, std::int64_t c) { return values[static_cast<std::size_t>(r * columns + c)]; }
  double at(std::int64_t r, std::int64_t c) const { return values[static_cast<std::size_t>(r * columns + c)]; }
};

// Returns random values that depend on the name alone, so that a rank can compute those of all ranks.
Matrix drawn(const std::string& name, std::int64_t rows_of, std::int64_t columns) {
  std::seed_seq seed(name.begin(), name.end());
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 0.5);
  Matrix matrix(rows_of, columns);
  std::generate(matrix.values.begin(), matrix.values.end(), [&] { return static_cast<float>(normal(random)); });
  return matrix;
}

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix product(a.rows, b.columns);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t c = 0; c < b.columns; ++c) {
      for (std::int64_t k = 0; k < a.columns; ++k) product.at(r, c) += a.at(r, k) * b.at(k, c);
    }
  }
  return product;
}

Matrix operator+(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] += b.values[i];
  return a;
}

Matrix transposed(const Matrix& a) {
  Matrix result(a.columns, a.rows);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t c = 0; c < a.columns; ++c) result.at(c, r) = a.at(r, c);
  }
  return result;
}

Matrix row_range(const Matrix& a, std::int64_t first, std::int64_t count) {
  Matrix result(count, a.columns);
  std::copy_n(a.values.begin() + first * a.columns, count * a.columns, result.values.begin());
  return result;
}

Matrix stacked(const std::vector<Matrix>& parts) {
  Matrix result(0, parts[0].columns);
  for (const Matrix& one : parts) {
    result.rows += one.rows;
    result.values.insert(result.values.end(), one.values.begin(), one.values.end());
  }
  return result;
}

Matrix relu(Matrix a) {
  for (double& value : a.values) value = std::max(value, 0.0);
  return a;
}

// dy where y is positive, 0 elsewhere.
Matrix relu_gradient(Matrix dy, const Matrix& y) {
  for (std::size_t i = 0; i < dy.values.size(); ++i) dy.values[i] = y.values[i] > 0 ? dy.values[i] : 0;
  return dy;
}

// One rank's network. It begins with a product of constants and weights; the gradient of these weights shows whether
// the gradient of their product is right.
class Network {
 public:
  TensorId begin(const std::string& name, const Matrix& constants, const Matrix& weights) {
    return product(name, parameter(name + "/constants", constants, false), weights);
  }
  TensorId product(const std::string& name, TensorId x, const Matrix& weights) {
    return op(name, std::make_shared<Dense>(), {x, parameter(name, weights, true)});
  }
  TensorId op(const std::string& name, std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs) {
    return graph_.outputs[0] = graph_.add_op(std::move(def), std::move(inputs), name, {})[0];
  }

  // Runs the network and compares the gradients of the weights. `ends_here`: whether this rank computes the output.
  void check(Backend& backend, const MeshCommunicators& communicators, const std::map<std::string, Matrix>& expected,
             bool ends_here = true) {
    Backward backward = differentiate(graph_, ends_here ? graph_.outputs : std::vector<TensorId>(), false);
    Program program;
    program.name = "collectives";
    program.flat = order_parameters(graph_, backward, {}, [](const GraphParameter&) { return false; });
    program.tensors = graph_.tensors;
    program.flat.assign_offsets(program.tensors);
    program.step.learning_rate = program.add("learning_rate", {}, DType::float32, Role::scalar);
    program.segments = {{Phase::forward, {}, graph_.ops}, {Phase::backward, {}, backward.ops}};
    program.schedule = {{0, 0, 0}, {1, 0, 0}};
    KernelChoices choices;
    Engine engine(backend, communicators, compile({program}, backend, choices));
    for (const NamedTensor& tensor : engine.weights()) {
      const Matrix& values = values_.at(tensor.name);
      std::copy(values.values.begin(), values.values.end(), tensor.view.as<float>());
    }
    engine.upload();
    StepResult result;
    for (int step = 0; step < 3; ++step) engine.run(0, {}, {}, result);  // computes the same each time
    for (const FlatEntry& entry : program.flat.parameters) {
      if (entry.gradient != no_tensor) compare(engine, program, entry, expected);
    }
  }

 private:
  TensorId parameter(const std::string& name, const Matrix& values, bool trainable) {
    Tensor tensor;
    tensor.name = name;
    tensor.type = {{values.rows, values.columns}, DType::float32};
    tensor.role = Role::parameter;
    values_.emplace(name, values);
    const TensorId id = graph_.add_tensor(std::move(tensor));
    graph_.parameters.push_back({.tensor = id, .initializer = {}, .trainable = trainable});
    return id;
  }

  static void compare(Engine& engine, const Program& program, const FlatEntry& entry,
                      const std::map<std::string, Matrix>& expected) {
    const std::string& name = program.tensor(entry.parameter).name;
    std::vector<std::byte> bytes;
    engine.read_tensor(0, entry.gradient, bytes);
    std::vector<float> found(static_cast<std::size_t>(entry.count));
    std::memcpy(found.data(), bytes.data(), found.size() * sizeof(float));
    const std::vector<double>& values = expected.at(name).values;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (std::abs(found[i] - values[i]) <= 1e-4 * (1 + std::abs(values[i]))) continue;
      throw std::runtime_error(format("the gradient of {}[{}] is {} instead of {}", name, i, found[i], values[i]));
    }
  }

  Graph graph_{.outputs = {no_tensor}};
  std::map<std::string, Matrix> values_;
};

std::string numbered(const char* name, int rank) { return format("{}{}", name, rank); }

// Returns the random matrices of all ranks, by rank.
std::vector<Matrix> drawn_by_all(const char* name, int ranks, std::int64_t rows_of, std::int64_t columns) {
  std::vector<Matrix> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(drawn(numbered(name, rank), rows_of, columns));
  return all;
}

constexpr MeshAxis tensor_axis = MeshAxis::tensor;
Mesh along_tensor(int ranks) { return {.tensor = ranks}; }

// y = sum over ranks of relu(x A_r) B_r: a layer split by columns, then one split by rows.
void columns_then_rows(Backend& backend, const MeshRank& rank, const MeshCommunicators& communicators) {
  const int ranks = rank.size(tensor_axis), r = rank.along(tensor_axis);
  const Matrix c = drawn("c", rows, rows), w = drawn("w", rows, width);
  const auto a = drawn_by_all("a", ranks, width, width), b = drawn_by_all("b", ranks, width, width);
  Network network;
  TensorId x = network.begin("w", c, w);
  x = network.op("f", std::make_shared<Identity>(tensor_axis), {x});
  x = network.product("a", x, a[static_cast<std::size_t>(r)]);
  x = network.op("relu", std::make_shared<Activation>(ActivationFunction{ActivationKind::relu}), {x});
  x = network.product("b", x, b[static_cast<std::size_t>(r)]);
  network.op("g", std::make_shared<AllReduce>(tensor_axis), {x});

  const Matrix input = c * w;
  Matrix y(rows, width), dx(rows, width);
  std::vector<Matrix> hidden;
  for (std::size_t i = 0; i < a.size(); ++i) {
    hidden.push_back(relu(input * a[i]));
    y = y + hidden[i] * b[i];
  }
  std::vector<Matrix> before;
  for (std::size_t i = 0; i < a.size(); ++i) {
    before.push_back(relu_gradient(y * transposed(b[i]), hidden[i]));
    dx = dx + before[i] * transposed(a[i]);
  }
  const auto i = static_cast<std::size_t>(r);
  network.check(backend, communicators,
                {{"w", transposed(c) * dx}, {"a", transposed(input) * before[i]}, {"b", transposed(hidden[i]) * y}});
}

// Each rank holds some rows: they are gathered, multiplied by each rank's weights, and the products' sum is scattered.
void gathered_and_scattered(Backend& backend, const MeshRank& rank, const MeshCommunicators& communicators) {
  const int ranks = rank.size(tensor_axis), r = rank.along(tensor_axis);
  const auto i = static_cast<std::size_t>(r);
  const auto c = drawn_by_all("c", ranks, rows, rows), w = drawn_by_all("w", ranks, rows, width);
  const auto a = drawn_by_all("a", ranks, width, width);
  Network network;
  TensorId x = network.begin("w", c[i], w[i]);
  x = network.op("gather", std::make_shared<AllGather>(tensor_axis, ranks), {x});
  x = network.product("a", x, a[i]);
  network.op("scatter", std::make_shared<ReduceScatter>(tensor_axis, ranks), {x});

  std::vector<Matrix> inputs;
  for (std::size_t k = 0; k < c.size(); ++k) inputs.push_back(c[k] * w[k]);
  const Matrix input = stacked(inputs);
  Matrix y(input.rows, width), dx(input.rows, width);
  for (const Matrix& weights : a) y = y + input * weights;
  for (const Matrix& weights : a) dx = dx + y * transposed(weights);
  network.check(backend, communicators,
                {{"w", transposed(c[i]) * row_range(dx, r * rows, rows)}, {"a", transposed(input) * y}});
}

// Each rank computes some columns, which are gathered and multiplied by weights that are the same on all ranks.
void gathered_columns(Backend& backend, const MeshRank& rank, const MeshCommunicators& communicators) {
  const int ranks = rank.size(tensor_axis), r = rank.along(tensor_axis);
  const Matrix c = drawn("c", rows, rows), w = drawn("w", rows, width), b = drawn("b", ranks * width, width);
  const auto a = drawn_by_all("a", ranks, width, width);
  Network network;
  TensorId x = network.begin("w", c, w);
  x = network.op("f", std::make_shared<Identity>(tensor_axis), {x});
  x = network.product("a", x, a[static_cast<std::size_t>(r)]);
  x = network.op("gather", std::make_shared<AllGatherColumns>(tensor_axis, ShardPosition{ranks, r}, ranks * width),
                 {x});
  network.product("b", x, b);

  const Matrix input = c * w;
  std::vector<Matrix> columns;
  for (const Matrix& weights : a) columns.push_back(transposed(input * weights));
  const Matrix gathered = transposed(stacked(columns)), y = gathered * b, dgathered = transposed(y * transposed(b));
  std::vector<Matrix> dcolumns;
  Matrix dx(rows, width);
  for (std::size_t k = 0; k < a.size(); ++k) {
    dcolumns.push_back(transposed(row_range(dgathered, static_cast<std::int64_t>(k) * width, width)));
    dx = dx + dcolumns[k] * transposed(a[k]);
  }
  network.check(backend, communicators,
                {{"w", transposed(c) * dx},
                 {"a", transposed(input) * dcolumns[static_cast<std::size_t>(r)]},
                 {"b", transposed(gathered) * y}});
}

// Each rank holds some columns: they are gathered, multiplied by each rank's weights, and the products' sum is
// scattered by columns.
void gathered_and_scattered_columns(Backend& backend, const MeshRank& rank, const MeshCommunicators& communicators) {
  const ShardPosition shard{rank.size(tensor_axis), rank.along(tensor_axis)};
  const int ranks = shard.count;
  const auto i = static_cast<std::size_t>(shard.index);
  const Matrix c = drawn("c", rows, rows);
  const auto w = drawn_by_all("w", ranks, rows, width), a = drawn_by_all("a", ranks, ranks * width, ranks * width);
  Network network;
  TensorId x = network.begin("w", c, w[i]);
  x = network.op("gather", std::make_shared<AllGatherColumns>(tensor_axis, shard, ranks * width, GatheredUse::summands),
                 {x});
  x = network.product("a", x, a[i]);
  network.op("scatter", std::make_shared<ReduceScatterColumns>(tensor_axis, shard), {x});

  std::vector<Matrix> columns;
  for (const Matrix& weights : w) columns.push_back(transposed(c * weights));
  const Matrix input = transposed(stacked(columns));
  Matrix y(rows, ranks * width), dx(rows, ranks * width);
  for (const Matrix& weights : a) y = y + input * weights;
  for (const Matrix& weights : a) dx = dx + y * transposed(weights);
  const Matrix own = transposed(row_range(transposed(dx), shard.index * width, width));
  network.check(backend, communicators, {{"w", transposed(c) * own}, {"a", transposed(input) * y}});
}

// The ranks hold different numbers of columns, which are gathered.
void uneven_columns(Backend& backend, const MeshRank& rank, const MeshCommunicators& communicators) {
  const ShardPosition shard{rank.size(tensor_axis), rank.along(tensor_axis)};
  const std::int64_t all = shard.count * width + 1;
  const Matrix c = drawn("c", rows, rows), whole = drawn("w", rows, all), b = drawn("b", all, width);
  const auto own = [&](const Matrix& of_all) {
    return transposed(row_range(transposed(of_all), shard.first_of(all), shard.size_of(all)));
  };
  Network network;
  TensorId x = network.begin("w", c, own(whole));
  x = network.op("gather", std::make_shared<AllGatherColumns>(tensor_axis, shard, all), {x});
  network.product("b", x, b);

  const Matrix input = c * whole, y = input * b;
  network.check(backend, communicators, {{"w", transposed(c) * own(y * transposed(b))}, {"b", transposed(input) * y}});
}

// Pipeline stages: each rank multiplies the output of the previous rank by its own weights.
void stages(Backend& backend, const MeshRank& rank, const MeshCommunicators& communicators) {
  constexpr MeshAxis axis = MeshAxis::pipeline;
  const int ranks = rank.size(axis), r = rank.along(axis);
  const Matrix c = drawn("c", rows, rows);
  std::vector<Matrix> weights{drawn("w0", rows, width)};
  for (int k = 1; k < ranks; ++k) weights.push_back(drawn(numbered("w", k), width, width));
  const TensorType between{{rows, width}, DType::float32};
  Network network;
  TensorId x = no_tensor;
  if (r == 0) {
    x = network.begin("w", c, weights[0]);
  } else {
    x = network.op("receive", std::make_shared<Receive>(axis, r - 1, between), {});
    x = network.product("w", x, weights[static_cast<std::size_t>(r)]);
  }
  if (r + 1 < ranks) network.op("send", std::make_shared<Send>(axis, r + 1), {x});

  std::vector<Matrix> inputs{c};
  for (const Matrix& one : weights) inputs.push_back(inputs.back() * one);
  Matrix dy = inputs.back();
  for (int k = ranks - 1; k > r; --k) dy = dy * transposed(weights[static_cast<std::size_t>(k)]);
  network.check(backend, communicators, {{"w", transposed(inputs[static_cast<std::size_t>(r)]) * dy}}, r + 1 == ranks);
}

// Piece i of every rank's rows goes to rank i, which multiplies the pieces by its own weights.
void exchanged(Backend& backend, const MeshRank& rank, const MeshCommunicators& communicators) {
  const int ranks = rank.size(tensor_axis), r = rank.along(tensor_axis);
  const auto i = static_cast<std::size_t>(r);
  const std::int64_t all = rows * ranks;
  const auto c = drawn_by_all("c", ranks, all, rows), w = drawn_by_all("w", ranks, rows, width);
  const auto a = drawn_by_all("a", ranks, width, width);
  Network network;
  TensorId x = network.begin("w", c[i], w[i]);
  x = network.op("exchange", std::make_shared<AllToAll>(tensor_axis, ranks), {x});
  network.product("a", x, a[i]);

  const auto received = [&](std::int64_t by) {
    std::vector<Matrix> parts;
    for (std::size_t k = 0; k < c.size(); ++k) parts.push_back(row_range(c[k] * w[k], by * rows, rows));
    return stacked(parts);
  };
  std::vector<Matrix> back;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const Matrix dx = received(static_cast<std::int64_t>(k)) * a[k] * transposed(a[k]);
    back.push_back(row_range(dx, r * rows, rows));
  }
  network.check(backend, communicators,
                {{"w", transposed(c[i]) * stacked(back)}, {"a", transposed(received(r)) * (received(r) * a[i])}});
}

// The last rank's rows go to all ranks, each of which has weights and an output of its own.
void broadcast(Backend& backend, const MeshRank& rank, const MeshCommunicators& communicators) {
  const int ranks = rank.size(tensor_axis), r = rank.along(tensor_axis), root = ranks - 1;
  const auto i = static_cast<std::size_t>(r);
  const Matrix c = drawn("c", rows, rows), w = drawn("w", rows, width);
  const auto a = drawn_by_all("a", ranks, width, width);
  Network network;
  std::vector<TensorId> sent;
  if (r == root) sent = {network.begin("w", c, w)};
  const auto def = std::make_shared<Broadcast>(tensor_axis, root, TensorType{{rows, width}, DType::float32});
  network.product("a", network.op("broadcast", def, sent), a[i]);

  const Matrix input = c * w;
  Matrix dx(rows, width);
  for (const Matrix& weights : a) dx = dx + input * weights * transposed(weights);
  network.check(backend, communicators, {{"w", transposed(c) * dx}, {"a", transposed(input) * (input * a[i])}});
}

// Sums over two axes are in flight at once, while a third product is computed.
void two_axes_in_flight(Backend& backend, const MeshRank& rank, const MeshCommunicators& communicators) {
  const int replicas = rank.size(MeshAxis::data), parts = rank.size(tensor_axis);
  const int d = rank.along(MeshAxis::data), t = rank.along(tensor_axis);
  const auto weights_of = [](const char* name, int at_data, int at_tensor) {
    return drawn(format("{}{}.{}", name, at_data, at_tensor), width, width);
  };
  const Matrix c = drawn("c", rows, rows), w = drawn("w", rows, width);
  Network network;
  const TensorId x = network.begin("w", c, w);
  const TensorId a = network.product("a", x, weights_of("a", d, t)), b = network.product("b", x, weights_of("b", d, t));
  const TensorId over_data = network.op("data", std::make_shared<AllReduce>(MeshAxis::data, true), {a});
  const TensorId over_tensor = network.op("tensor", std::make_shared<AllReduce>(tensor_axis, true), {b});
  const TensorId meanwhile = network.product("e", x, weights_of("e", d, t));
  const TensorId first = network.op("wait tensor", std::make_shared<Wait>(), {over_tensor});
  const TensorId second = network.op("wait data", std::make_shared<Wait>(), {over_data});
  network.op("sum", std::make_shared<Add>(), {network.op("half", std::make_shared<Add>(), {first, second}), meanwhile});

  const Matrix input = c * w;
  Matrix y = input * weights_of("e", d, t);
  for (int k = 0; k < replicas; ++k) y = y + input * weights_of("a", k, t);
  for (int k = 0; k < parts; ++k) y = y + input * weights_of("b", d, k);
  const Matrix dw = transposed(input) * y;
  Matrix dx(rows, width);
  for (const char* name : {"a", "b", "e"}) dx = dx + y * transposed(weights_of(name, d, t));
  network.check(backend, communicators, {{"w", transposed(c) * dx}, {"a", dw}, {"b", dw}, {"e", dw}});
}

struct Case {
  std::string name;
  std::function<Mesh(int ranks)> mesh;
  std::function<void(Backend&, const MeshRank&, const MeshCommunicators&)> run;
  int multiple_of = 1;  // the number of ranks must be a multiple of this
};

const Case all_cases[] = {
    {"columns then rows", along_tensor, columns_then_rows},
    {"gathered and scattered rows", along_tensor, gathered_and_scattered},
    {"gathered columns", along_tensor, gathered_columns},
    {"gathered and scattered columns", along_tensor, gathered_and_scattered_columns},
    {"columns of several sizes", along_tensor, uneven_columns},
    {"stages", [](int ranks) { return Mesh{.pipeline = ranks}; }, stages},
    {"exchanged rows", along_tensor, exchanged},
    {"broadcast", along_tensor, broadcast},
    {"two axes in flight", [](int ranks) { return Mesh{.data = ranks / 2, .tensor = 2}; }, two_axes_in_flight, 4},
};

}  // namespace

void run_all(Backend& backend, Communicator& world) {
  for (const Case& one : all_cases) {
    if (world.size() % one.multiple_of != 0) continue;
    const Mesh mesh = one.mesh(world.size());
    const MeshAxes axes(world, mesh, false);
    try {
      one.run(backend, MeshRank(mesh, world.rank()), axes.communicators());
    } catch (const std::exception& error) {
      throw std::runtime_error(one.name + ": " + error.what());
    }
  }
}

}  // namespace trainctl::collective_networks
