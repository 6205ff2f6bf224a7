// Shapes, placements and gradients of programs of elementwise functions.
#include "core/graph/ops/elementwise/elementwise.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/expression/scalar_graph.h"
#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/ops/reduce.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

bool holds(const std::vector<int>& numbers, std::size_t number) {
  return std::find(numbers.begin(), numbers.end(), static_cast<int>(number)) != numbers.end();
}

// A constant factor of a value, which may be -1, and the other factor; 1 and the value itself if there is none, or if
// it is so large or so small that the other factor could overflow or underflow.
std::pair<double, int> factor_of(const ScalarGraph& graph, int number) {
  const ScalarStep& of = graph.step(number);
  if (of.function == ScalarFunction::negative) {
    const auto [factor, value] = factor_of(graph, of.operands[0]);
    return {-factor, value};
  }
  for (std::size_t k = 0; k < 2 && of.function == ScalarFunction::multiply; ++k) {
    const ScalarStep& operand = graph.step(of.operands[k]);
    const double size = std::abs(operand.value);
    if (operand.function != ScalarFunction::constant || size < 1e-4 || size > 1e4) continue;
    return {operand.value, of.operands[1 - k]};
  }
  return {1, number};
}

}  // namespace

std::string Elementwise::attributes() const {
  AttributeText text;
  text.word(to_string(program));
  for (const DType dtype : dtypes) text.word(name_of(dtype));
  for (const ExpandedDimension& of : expanded) text.value(format("expanded[-{}]", of.from_last + 1), of.size);
  for (const int input : linear) text.value("linear", input);
  return text.text();
}

std::vector<TensorType> Elementwise::outputs(std::span<const TensorType> inputs) const {
  require(static_cast<int>(inputs.size()) == program.inputs && dtypes.size() == program.results.size(),
          "elementwise: the program has other inputs or results");
  std::int64_t rank = 0;
  for (const TensorType& input : inputs) rank = std::max(rank, input.shape.rank());
  for (const ExpandedDimension& of : expanded) rank = std::max(rank, std::int64_t{of.from_last} + 1);
  Shape shape(std::vector<std::int64_t>(static_cast<std::size_t>(rank), 1));
  const auto broadcast = [&](std::int64_t from_last, std::int64_t size) {
    std::int64_t& of = shape[rank - 1 - from_last];
    require(of == 1 || size == 1 || of == size, "elementwise: the shapes of the inputs cannot be broadcast");
    if (size != 1) of = size;
  };
  for (const TensorType& input : inputs) {
    for (std::int64_t i = 0; i < input.shape.rank(); ++i) broadcast(i, input.shape[input.shape.rank() - 1 - i]);
  }
  for (const ExpandedDimension& of : expanded) broadcast(of.from_last, of.size);
  std::vector<TensorType> types;
  for (const DType dtype : dtypes) types.push_back({shape, dtype});
  return types;
}

OutputPlacements Elementwise::placements(const PlacementQuery& query) const {
  const TensorType& y = query.output_types[0];
  std::string names = every_dimension(y);
  for (const ExpandedDimension& of : expanded) names[names.size() - 1 - static_cast<std::size_t>(of.from_last)] = '.';
  PlacementRule rule;
  for (std::size_t i = 0; i < query.input_types.size(); ++i) {
    const Shape& x = query.input_types[i].shape;
    std::string of = names.substr(names.size() - static_cast<std::size_t>(x.rank()));
    for (std::int64_t d = 0; d < x.rank(); ++d) {
      if (x[d] != y.shape[y.shape.rank() - x.rank() + d]) of[static_cast<std::size_t>(d)] = '.';
    }
    rule.inputs.push_back(of + (holds(linear, i) ? "+S" : ""));
  }
  rule.outputs.assign(program.results.size(), names + (linear.empty() ? "" : "+S"));
  return place_by(rule, query);
}

double Elementwise::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  const auto computed = std::count_if(program.steps.begin(), program.steps.end(),
                                      [](const ScalarStep& step) { return operands_of(step.function) > 0; });
  return static_cast<double>(computed) * static_cast<double>(outputs[0].shape.count());
}

std::vector<InPlace> Elementwise::in_place() const {
  std::vector<InPlace> pairs;
  for (int i = 0; i < program.inputs; ++i) pairs.push_back({i, 0});
  return pairs;
}

void Elementwise::differentiate(const Op& op, Differentiator& differentiator) const {
  ScalarGraph graph(program);
  std::vector<int> roots, seeds;
  std::vector<TensorId> operands = op.inputs;
  for (std::size_t r = 0; r < op.outputs.size(); ++r) {
    const TensorId dy = differentiator.gradient_of(op.outputs[r]);
    if (dy == no_tensor) continue;
    roots.push_back(program.results[r]);
    seeds.push_back(graph.of_input(static_cast<int>(operands.size())));
    operands.push_back(dy);
  }
  const std::vector<int> gradients = graph.gradients(roots, seeds, program.inputs);
  struct Wanted {
    TensorId input = no_tensor;
    std::size_t result = 0;  // the number of its gradient in `results`
    float scale = 1;
  };
  std::vector<Wanted> wanted;
  std::vector<int> results;
  std::vector<DType> types;
  const Shape& shape = differentiator.tensor(op.outputs[0]).type.shape;
  const auto needs_gradient = [&](std::size_t i) {
    return gradients[i] >= 0 && differentiator.needs_gradient(op.inputs[i]);
  };
  const auto is_summed = [&](std::size_t i) { return differentiator.tensor(op.inputs[i]).type.shape != shape; };
  const auto dtype_of = [&](std::size_t i) { return differentiator.tensor(op.inputs[i]).type.dtype; };
  // A gradient that is summed is the sum of the value without a constant factor, or of another gradient that is the
  // same value with another factor. Values in float16 keep their factors, without which they could overflow.
  const auto summed_value = [&](std::size_t i) {
    if (dtype_of(i) == DType::float16) return std::pair(1.0, gradients[i]);
    const auto [factor, value] = factor_of(graph, gradients[i]);
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (!needs_gradient(k) || is_summed(k) || dtype_of(k) != dtype_of(i)) continue;
      const auto [other, same] = factor_of(graph, gradients[k]);
      if (same == value) return std::pair(factor / other, gradients[k]);
    }
    return std::pair(factor, value);
  };
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (!needs_gradient(i)) continue;
    const auto [factor, value] = is_summed(i) ? summed_value(i) : std::pair(1.0, gradients[i]);
    const auto scale = static_cast<float>(factor);
    const ScalarStep& step = graph.step(value);
    if (step.function == ScalarFunction::input && step.index >= program.inputs) {
      const TensorId dy = operands[static_cast<std::size_t>(step.index)];
      contribute_broadcast(op, op.inputs[i], dy, scale, differentiator);
      continue;
    }
    std::size_t at = 0;
    while (at < results.size() && (results[at] != value || types[at] != dtype_of(i))) ++at;
    wanted.push_back({op.inputs[i], at, scale});
    if (at < results.size()) continue;
    results.push_back(value);
    types.push_back(dtype_of(i));
  }
  if (wanted.empty()) return;
  ElementwiseProgram made = graph.program(results);
  std::vector<TensorId> read;
  std::vector<int> of_outputs;
  for (const int input : compact_inputs(made)) {
    if (input >= program.inputs) of_outputs.push_back(static_cast<int>(read.size()));
    read.push_back(operands[static_cast<std::size_t>(input)]);
  }
  auto def = std::make_shared<Elementwise>(std::move(made), std::move(types));
  def->linear = std::move(of_outputs);
  const std::vector<TensorId> found = differentiator.emit(std::move(def), std::move(read), op);
  for (const Wanted& of : wanted) contribute_broadcast(op, of.input, found[of.result], of.scale, differentiator);
}

}  // namespace trainctl
