// Tests the translation of elementwise programs and of reductions: an interpreter of ONNX's operators on single values
// computes the translated programs, and evaluate() the original ones.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "core/exec/interfaces/snapshot.h"
#include "core/expression/scalar_graph.h"
#include "core/graph/graph.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/reduce.h"
#include "io/onnx/network.h"
#include "test/catch.h"

namespace trainctl::testing::onnx_expressions_test {
namespace {

// A graph with inputs of these types.
Graph graph_of(const std::vector<TensorType>& inputs) {
  Graph graph;
  graph.batch = 2;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    graph.inputs.push_back(graph.add_tensor({.name = "x" + std::to_string(i), .type = inputs[i], .role = Role::input}));
  }
  return graph;
}

OnnxModel model_of(Graph graph, std::shared_ptr<const OpDef> def, const std::vector<std::string>& outputs = {"y"},
                   const std::vector<NamedTensor>& weights = {}) {
  std::vector<TensorId> inputs = graph.inputs;
  for (const GraphParameter& parameter : graph.parameters) inputs.push_back(parameter.tensor);
  graph.outputs =
      graph.add_op(std::move(def), inputs, "op", {}, outputs.size() > 1 ? outputs : std::vector<std::string>{});
  return onnx_model(graph, weights, outputs, DType::float32);
}

double whole(double value) { return std::nearbyint(value); }

// The value of an operator of ONNX for single values; conditions are 0 or 1.
double value_of(const OnnxNode& node, const std::vector<double>& x) {
  const std::string& type = node.type;
  static const std::map<std::string, double (*)(double)> unary = {
      {"Abs", std::fabs}, {"Exp", std::exp},     {"Log", std::log},   {"Sqrt", std::sqrt}, {"Sin", std::sin},
      {"Cos", std::cos},  {"Tan", std::tan},     {"Atan", std::atan}, {"Tanh", std::tanh}, {"Atanh", std::atanh},
      {"Erf", std::erf},  {"Floor", std::floor}, {"Ceil", std::ceil}, {"Round", whole}};
  if (const auto found = unary.find(type); found != unary.end()) return found->second(x[0]);
  const bool a = x[0] != 0, b = x.size() > 1 && x[1] != 0;
  if (type == "Cast") return std::get<std::int64_t>(node.attributes.at(0).value) == 9 ? a : x[0];
  if (type == "Identity") return x[0];
  if (type == "Neg") return -x[0];
  if (type == "Sign") return std::isnan(x[0]) ? x[0] : (x[0] > 0) - (x[0] < 0);
  if (type == "Reciprocal") return 1 / x[0];
  if (type == "Sigmoid") return 1 / (1 + std::exp(-x[0]));
  if (type == "Softplus") return std::log1p(std::exp(x[0]));
  if (type == "Not") return !a;
  if (type == "IsNaN") return std::isnan(x[0]);
  if (type == "IsInf") return std::isinf(x[0]);
  if (type == "Add") return x[0] + x[1];
  if (type == "Sub") return x[0] - x[1];
  if (type == "Mul") return x[0] * x[1];
  if (type == "Div") return x[0] / x[1];
  if (type == "Mod") return std::fmod(x[0], x[1]);  // its attribute fmod is 1
  if (type == "Pow") return std::pow(x[0], x[1]);
  if (type == "Max") return std::max(x[0], x[1]);
  if (type == "Min") return std::min(x[0], x[1]);
  if (type == "Less") return x[0] < x[1];
  if (type == "LessOrEqual") return x[0] <= x[1];
  if (type == "Equal") return x[0] == x[1];
  if (type == "And") return a && b;
  if (type == "Or") return a || b;
  if (type == "Xor") return a != b;
  if (type == "Where") return a ? x[1] : x[2];
  FAIL("an operator that this test does not know: " << type);
  return 0;
}

// The outputs of a model whose constants are single numbers.
std::vector<double> run(const OnnxModel& model, const std::vector<double>& inputs) {
  std::map<std::string, double> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[model.inputs[i].name] = inputs[i];
  for (const OnnxConstant& constant : model.constants) {
    float value = 0;
    REQUIRE(constant.bytes.size() == sizeof value);
    std::memcpy(&value, constant.bytes.data(), sizeof value);
    values[constant.name] = double{value};
  }
  for (const OnnxNode& node : model.nodes) {
    std::vector<double> operands;
    for (const std::string& input : node.inputs) operands.push_back(values.at(input));
    values[node.outputs.back()] = value_of(node, operands);
  }
  std::vector<double> found;
  for (const OnnxValue& output : model.outputs) found.push_back(values.at(output.name));
  return found;
}

std::string types(const OnnxModel& model) {
  std::string text;
  for (const OnnxNode& node : model.nodes) text += (text.empty() ? "" : " ") + node.type;
  return text;
}

std::vector<std::int64_t> integers(const OnnxModel& model, const std::string& name) {
  for (const OnnxConstant& constant : model.constants) {
    if (constant.name != name) continue;
    std::vector<std::int64_t> values(constant.bytes.size() / sizeof(std::int64_t));
    std::memcpy(values.data(), constant.bytes.data(), constant.bytes.size());
    return values;
  }
  FAIL("no constant " << name);
  return {};
}

}  // namespace

TEST_CASE("operators compute every elementwise function") {
  std::mt19937 random(3);
  for (int f = static_cast<int>(ScalarFunction::negative); f <= static_cast<int>(ScalarFunction::where); ++f) {
    const auto function = static_cast<ScalarFunction>(f);
    CAPTURE(name_of(function));
    ScalarGraph graph;
    const int count = operands_of(function);
    const int root = graph.apply(function, graph.of_input(0), count > 1 ? graph.of_input(1) : -1,
                                 count > 2 ? graph.of_input(2) : -1);
    // The second result reads the first one as a number and as a condition.
    const int both[] = {root, graph.apply(ScalarFunction::where, root, graph.of_input(0), graph.of_constant(7))};
    const auto def = std::make_shared<Elementwise>(graph.program(both), std::vector(2, DType::float32));
    const std::vector<TensorType> inputs(static_cast<std::size_t>(count), {{2}, DType::float32});
    const OnnxModel model = model_of(graph_of(inputs), def, {"y", "z"});
    for (int sample = 0; sample < 60; ++sample) {
      std::vector<double> values;
      for (int i = 0; i < count; ++i) values.push_back(std::normal_distribution<double>(0, 2)(random));
      if (sample % 3 == 0) values[0] = 0.01 * values[0];
      if (sample % 7 == 0) values[0] = std::round(values[0]);
      if (sample % 5 == 0) std::fill(values.begin(), values.end(), values[0]);
      const std::vector<double> expected = evaluate(def->program, values), found = run(model, values);
      for (std::size_t r = 0; r < expected.size(); ++r) {
        CAPTURE(values, r);
        CHECK((std::isnan(expected[r]) ? std::isnan(found[r]) : found[r] == Approx(expected[r]).epsilon(1e-9)));
      }
    }
  }
}

TEST_CASE("infinity and NaN keep their meaning in conditions") {
  using enum ScalarFunction;
  ScalarGraph graph;
  const int x = graph.of_input(0);
  const int results[] = {graph.apply(isfinite, x), graph.apply(isnan, x), graph.apply(not_equal, x, x)};
  const auto def = std::make_shared<Elementwise>(graph.program(results), std::vector(3, DType::float32));
  const OnnxModel model = model_of(graph_of({{{2}, DType::float32}}), def, {"a", "b", "c"});
  CHECK(run(model, {3}) == std::vector<double>{1, 0, 0});
  CHECK(run(model, {std::numeric_limits<double>::infinity()}) == std::vector<double>{0, 0, 0});
  CHECK(run(model, {std::numeric_limits<double>::quiet_NaN()}) == std::vector<double>{0, 1, 1});
}

TEST_CASE("inputs are cast to float32, weights keep their shape, and a comparison is a condition until it is needed") {
  using enum ScalarFunction;
  ScalarGraph graph;
  const int chosen = graph.apply(where, graph.apply(less, graph.of_input(0), graph.of_constant(3)), graph.of_input(1),
                                 graph.of_input(2));
  const int results[] = {chosen};
  const auto def = std::make_shared<Elementwise>(graph.program(results), std::vector{DType::float32});
  Graph network = graph_of({{{2, 4}, DType::int32}, {{2, 4}, DType::float32}});
  network.parameters.push_back(
      {.tensor = network.add_tensor({.name = "w", .type = {{4}, DType::float32}, .role = Role::parameter})});
  std::vector<float> values{1, 2, 3, 4};
  const NamedTensor w{"w", {4}, {values.data(), DType::float32, 4}};
  const OnnxModel model = model_of(network, def, {"y"}, {w});
  CHECK(types(model) == "Cast Less Where Identity");
  CHECK(model.nodes[2].inputs == std::vector<std::string>{model.nodes[1].outputs[0], "x1", "w"});
}

TEST_CASE("results are repeated along the dimensions of other inputs, and along new ones") {
  using enum ScalarFunction;
  ScalarGraph graph;
  const int x = graph.of_input(0), scale = graph.of_input(1);
  const int results[] = {graph.apply(multiply, x, scale), graph.apply(negative, scale)};
  const auto def = std::make_shared<Elementwise>(graph.program(results), std::vector(2, DType::float32));
  const OnnxModel model = model_of(graph_of({{{2, 4}, DType::float32}, {{2, 1}, DType::float32}}), def, {"y", "z"});
  CHECK(types(model) == "Mul Neg Add Shape Expand Identity Identity");
  CHECK(model.nodes[4].inputs == std::vector<std::string>{model.nodes[1].outputs[0], model.nodes[3].outputs[0]});

  ScalarGraph copying;
  const int copy[] = {copying.of_input(0)};
  auto repeated = std::make_shared<Elementwise>(copying.program(copy), std::vector{DType::float32});
  repeated->expanded = {{1, 6}};
  const OnnxModel wide = model_of(graph_of({{{2, 1, 3}, DType::float32}}), repeated);
  CHECK(types(wide) == "Expand Identity");
  CHECK(integers(wide, wide.nodes[0].inputs[1]) == std::vector<std::int64_t>{1, 6, 1});
}

TEST_CASE("reductions have the axes of the op, and a scale") {
  auto mean = std::make_shared<Reduce>(ReduceKind::sum, 1, 3);
  mean->scale = 0.25f;
  const OnnxModel sums = model_of(graph_of({{{2, 2, 2, 5}, DType::float32}}), mean);
  CHECK(types(sums) == "ReduceSum Mul Identity");
  CHECK(integers(sums, sums.nodes[0].inputs[1]) == std::vector<std::int64_t>{1, 2});
  CHECK(std::get<std::int64_t>(sums.nodes[0].attributes.at(0).value) == 0);
  auto largest = std::make_shared<Reduce>(ReduceKind::maximum, 1, 2);
  largest->keep = true;
  const OnnxModel extremes = model_of(graph_of({{{2, 4}, DType::float32}}), largest);
  CHECK(types(extremes) == "ReduceMax Identity");
  CHECK(std::get<std::int64_t>(extremes.nodes[0].attributes.at(0).value) == 1);
  CHECK(types(model_of(graph_of({{{2, 4}, DType::float32}}), std::make_shared<Reduce>(ReduceKind::minimum, 1, 1))) ==
        "Identity");
}

}  // namespace trainctl::testing::onnx_expressions_test
