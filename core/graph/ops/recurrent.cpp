// Shapes, placements and gradients of recurrent layers.
#include "core/graph/ops/recurrent.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

AttributeText describe(const RecurrentAttributes& a) {
  AttributeText text;
  text.word(std::string(name_of(a.cell)))
      .flag("last_step", !a.sequences)
      .flag("backwards", a.backwards)
      .flag("reversed", a.reversed)
      .flag("masked", a.masked)
      .flag("begins", a.begins)
      .flag("returns_c", a.returns_c);
  if (a.drops()) text.value("dropout", a.dropout.rate).value("seed", a.dropout.seed).value("layer", a.dropout.layer);
  return text;
}

int gates_of(RecurrentCell cell) {
  return with_cell(cell, [](auto arithmetic) { return decltype(arithmetic)::gates; });
}
bool splits(RecurrentCell cell) {
  return with_cell(cell, [](auto arithmetic) { return decltype(arithmetic)::splits; });
}

// Counts the matrix products with the recurrent kernel in all steps, and about 8 operations for each gate.
double step_flops(const TensorType& gates, std::int64_t units) {
  return static_cast<double>(gates.shape.count()) * (2.0 * static_cast<double>(units) + 8.0);
}

}  // namespace

RecurrentInputs::RecurrentInputs(const RecurrentAttributes& a, std::size_t count) {
  int end = static_cast<int>(count);
  if (a.masked) mask = --end;
  if (a.drops()) {
    step = --end;
    samples = --end;
  }
  if (a.begins && a.cell == RecurrentCell::lstm) c = --end;
  if (a.begins) h = --end;
  if (end > kernel + 1) bias = kernel + 1;
}

RecurrentGradInputs::RecurrentGradInputs(const RecurrentAttributes& a, bool has_dy) {
  if (!has_dy) {
    for (int* input : {&dy, &gates, &memories, &states, &kernel}) --*input;
  }
  int last = kernel;
  if (a.begins && a.cell == RecurrentCell::lstm) c = ++last;
  if (a.returns_c) dc = ++last;
  if (a.drops()) {
    samples = ++last;
    step = ++last;
  }
  if (a.masked) mask = ++last;
}

std::string Recurrent::attributes() const { return describe(a).flag("training", training).text(); }

std::vector<TensorType> Recurrent::outputs(std::span<const TensorType> inputs) const {
  const TensorType& x = inputs[0];
  const Shape& kernel = inputs[1].shape;
  require(
      x.shape.rank() == 3 && kernel.rank() == 2 && kernel[1] == gates_of(a.cell) * kernel[0] && x.shape[2] == kernel[1],
      "recurrent: x and the kernel do not fit");
  const RecurrentInputs in(a, inputs.size());
  const auto type = [&](int input) -> const TensorType& { return inputs[static_cast<std::size_t>(input)]; };
  require(in.bias < 0 || (splits(a.cell) && type(in.bias).shape == Shape{kernel[1]}),
          "recurrent: the bias does not fit the kernel");
  require(!a.masked || type(in.mask).shape == Shape{x.shape[0], x.shape[1]}, "recurrent: the mask does not fit x");
  const TensorType steps{x.shape.with_back(kernel[0]), x.dtype}, state{{x.shape[0], kernel[0]}, x.dtype};
  for (const int begin : {in.h, in.c}) {
    require(begin < 0 || type(begin) == state, "recurrent: a state before the first step does not fit x");
  }
  require(!a.returns_c || a.cell == RecurrentCell::lstm, "recurrent: only LSTM has a cell state");
  std::vector<TensorType> types{a.sequences ? steps : state};
  if (training) types.insert(types.end(), {x, steps, steps});
  if (a.returns_c) types.push_back(state);
  return types;
}

OutputPlacements Recurrent::placements(const PlacementQuery& query) const {
  PlacementRule rule{{"a..", ".."}, {a.sequences ? "a.." : "a."}};
  const RecurrentInputs in(a, query.inputs.size());
  if (in.bias >= 0) rule.inputs.emplace_back(".");
  for (const int begin : {in.h, in.c}) {
    if (begin >= 0) rule.inputs.emplace_back("a.");
  }
  if (a.drops()) rule.inputs.insert(rule.inputs.end(), {"a", ""});
  if (a.masked) rule.inputs.emplace_back("a.");
  if (training) rule.outputs.insert(rule.outputs.end(), 3, "a..");
  if (a.returns_c) rule.outputs.emplace_back("a.");
  return place_by(rule, query);
}

double Recurrent::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return step_flops(inputs[0], inputs[1].shape[0]);
}

void Recurrent::differentiate(const Op& op, Differentiator& differentiator) const {
  require(training, "recurrent: no gradient outside of training");
  const RecurrentInputs in(a, op.inputs.size());
  const auto input = [&](int number) { return op.inputs[static_cast<std::size_t>(number)]; };
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  RecurrentAttributes used = a;  // without the last cell state if the loss does not depend on it
  used.returns_c = a.returns_c && differentiator.gradient_of(op.outputs.back()) != no_tensor;
  TensorId states = op.outputs[3];
  std::vector<TensorId> operands;
  if (dy != no_tensor) operands.push_back(dy);
  operands.insert(operands.end(), {op.outputs[1], op.outputs[2], states, op.inputs[1]});
  if (in.c >= 0) operands.push_back(input(in.c));
  if (used.returns_c) operands.push_back(differentiator.gradient_of(op.outputs.back()));
  if (a.drops()) operands.insert(operands.end(), {input(in.samples), input(in.step)});
  if (a.masked) operands.push_back(input(in.mask));
  const auto gradients =
      differentiator.emit(std::make_shared<RecurrentGrad>(used, dy != no_tensor), std::move(operands), op);
  const TensorId dproduct = gradients[splits(a.cell) ? 1 : 0];
  const bool needs_bias_gradient = in.bias >= 0 && differentiator.needs_gradient(input(in.bias));
  if (differentiator.needs_gradient(op.inputs[1]) || needs_bias_gradient) {
    std::vector<TensorId> results{parameter_gradient_or_none(op.inputs[1], differentiator)};
    if (needs_bias_gradient) results.push_back(differentiator.parameter_gradient(input(in.bias)));
    if (a.drops()) {
      const auto drop =
          std::make_shared<Dropout>(a.dropout.rate, a.dropout.seed, a.dropout.layer, DropoutUnit::channel);
      states = differentiator.emit(drop, {states, input(in.samples), input(in.step)}, op)[0];
    }
    differentiator.emit_into(std::make_shared<DenseGradWeights>(needs_bias_gradient, differentiator.accumulate()),
                             {states, dproduct}, std::move(results), op);
  }
  if (differentiator.needs_gradient(op.inputs[0])) differentiator.contribute(op.inputs[0], gradients[0]);
  std::size_t next = splits(a.cell) ? 2 : 1;
  for (const int begin : {in.h, in.c}) {
    if (begin < 0) continue;
    if (differentiator.needs_gradient(input(begin))) differentiator.contribute(input(begin), gradients[next]);
    ++next;
  }
}

std::string RecurrentGrad::attributes() const { return describe(a).flag("no_dy", !has_dy).text(); }

std::vector<TensorType> RecurrentGrad::outputs(std::span<const TensorType> inputs) const {
  const RecurrentGradInputs in(a, has_dy);
  const TensorType& gates = inputs[static_cast<std::size_t>(in.gates)];
  std::vector<TensorType> types(splits(a.cell) ? 2 : 1, gates);
  const Shape& kernel = inputs[static_cast<std::size_t>(in.kernel)].shape;
  if (a.begins) types.insert(types.end(), in.c >= 0 ? 2 : 1, {{gates.shape[0], kernel[0]}, gates.dtype});
  return types;
}

OutputPlacements RecurrentGrad::placements(const PlacementQuery& query) const {
  const RecurrentGradInputs in(a, has_dy);
  PlacementRule rule;
  if (has_dy) rule.inputs.emplace_back(a.sequences ? "a..+S" : "a.+S");
  rule.inputs.insert(rule.inputs.end(), {"a..", "a..", "a..", ".."});
  if (in.c >= 0) rule.inputs.emplace_back("a.");
  if (in.dc >= 0) rule.inputs.emplace_back("a.+S");
  if (a.drops()) rule.inputs.insert(rule.inputs.end(), {"a", ""});
  if (a.masked) rule.inputs.emplace_back("a.");
  rule.outputs.resize(splits(a.cell) ? 2 : 1, "a..+S");
  rule.outputs.resize(query.output_types.size(), "a.+S");
  return place_by(rule, query);
}

double RecurrentGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  const RecurrentGradInputs in(a, has_dy);
  return step_flops(inputs[static_cast<std::size_t>(in.gates)], inputs[static_cast<std::size_t>(in.kernel)].shape[0]);
}

}  // namespace trainctl
