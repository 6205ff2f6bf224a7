// Shapes, placements and gradients of recurrent layers.
#include "core/graph/ops/recurrent.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/ops/dense.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

AttributeText describe(const RecurrentAttributes& a) {
  AttributeText text;
  return text.word(std::string(name_of(a.cell)))
      .flag("last_step", !a.sequences)
      .flag("backwards", a.backwards)
      .flag("reversed", a.reversed)
      .flag("masked", a.masked);
}

int gates_of(RecurrentCell cell) {
  return with_cell(cell, [](auto arithmetic) { return decltype(arithmetic)::gates; });
}
bool splits(RecurrentCell cell) {
  return with_cell(cell, [](auto arithmetic) { return decltype(arithmetic)::splits; });
}

// The number of inputs of Recurrent before the mask.
std::size_t inputs_before_mask(const RecurrentAttributes& a, std::size_t inputs) { return inputs - (a.masked ? 1 : 0); }

// Counts the matrix products with the recurrent kernel in all steps, and about 8 operations for each gate.
double step_flops(const TensorType& gates, std::int64_t units) {
  return static_cast<double>(gates.shape.count()) * (2.0 * static_cast<double>(units) + 8.0);
}

}  // namespace

std::string Recurrent::attributes() const { return describe(a).flag("training", training).text(); }

std::vector<TensorType> Recurrent::outputs(std::span<const TensorType> inputs) const {
  const TensorType& x = inputs[0];
  const Shape& kernel = inputs[1].shape;
  require(
      x.shape.rank() == 3 && kernel.rank() == 2 && kernel[1] == gates_of(a.cell) * kernel[0] && x.shape[2] == kernel[1],
      "recurrent: x and the kernel do not fit");
  require(inputs_before_mask(a, inputs.size()) == 2 || (splits(a.cell) && inputs[2].shape == Shape{kernel[1]}),
          "recurrent: the bias does not fit the kernel");
  require(!a.masked || inputs.back().shape == Shape{x.shape[0], x.shape[1]}, "recurrent: the mask does not fit x");
  const TensorType steps{x.shape.with_back(kernel[0]), x.dtype};
  std::vector<TensorType> types{a.sequences ? steps : TensorType{{x.shape[0], kernel[0]}, x.dtype}};
  if (training) types.insert(types.end(), {x, steps, steps});
  return types;
}

OutputPlacements Recurrent::placements(const PlacementQuery& query) const {
  PlacementRule rule{{"a..", ".."}, {a.sequences ? "a.." : "a."}};
  if (inputs_before_mask(a, query.inputs.size()) > 2) rule.inputs.emplace_back(".");
  if (a.masked) rule.inputs.emplace_back("a.");
  rule.outputs.resize(query.output_types.size(), "a..");
  return place_by(rule, query);
}

double Recurrent::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return step_flops(inputs[0], inputs[1].shape[0]);
}

void Recurrent::differentiate(const Op& op, Differentiator& differentiator) const {
  require(training, "recurrent: no gradient outside of training");
  const TensorId gates = op.outputs[1], memories = op.outputs[2], states = op.outputs[3];
  std::vector<TensorId> operands{differentiator.gradient_of(op.outputs[0]), gates, memories, states, op.inputs[1]};
  if (a.masked) operands.push_back(op.inputs.back());
  const auto gradients = differentiator.emit(std::make_shared<RecurrentGrad>(a), std::move(operands), op);
  const bool needs_bias_gradient =
      inputs_before_mask(a, op.inputs.size()) > 2 && differentiator.needs_gradient(op.inputs[2]);
  if (differentiator.needs_gradient(op.inputs[1]) || needs_bias_gradient) {
    std::vector<TensorId> results{parameter_gradient_or_none(op.inputs[1], differentiator)};
    if (needs_bias_gradient) results.push_back(differentiator.parameter_gradient(op.inputs[2]));
    differentiator.emit_into(std::make_shared<DenseGradWeights>(needs_bias_gradient, differentiator.accumulate()),
                             {states, gradients.back()}, std::move(results), op);
  }
  if (differentiator.needs_gradient(op.inputs[0])) differentiator.contribute(op.inputs[0], gradients[0]);
}

std::string RecurrentGrad::attributes() const { return describe(a).text(); }

std::vector<TensorType> RecurrentGrad::outputs(std::span<const TensorType> inputs) const {
  return std::vector<TensorType>(splits(a.cell) ? 2 : 1, inputs[1]);
}

OutputPlacements RecurrentGrad::placements(const PlacementQuery& query) const {
  PlacementRule rule{{a.sequences ? "a..+S" : "a.+S", "a..", "a..", "a..", ".."}, {}};
  if (a.masked) rule.inputs.emplace_back("a.");
  rule.outputs.resize(query.output_types.size(), "a..+S");
  return place_by(rule, query);
}

double RecurrentGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return step_flops(inputs[1], inputs[4].shape[0]);
}

}  // namespace trainctl
