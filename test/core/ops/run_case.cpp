// Runs an op case on a backend.
#include "test/core/ops/run_case.h"

#include <set>

#include "core/compile/joined_ops.h"
#include "core/graph/differentiator.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/passes/fuse.h"

namespace trainctl::test {
namespace {

// An op after an input, which records the tensor with the input's gradient.
struct Probe final : OpDef {
  TensorId* gradient;

  explicit Probe(TensorId* target) : gradient(target) {}
  std::string_view kind() const override { return "probe"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override { return {{query.inputs[0]}, {}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override {
    *gradient = differentiator.gradient_of(op.outputs[0]);
  }
};

}  // namespace

DType dtype_of(char letter, const Value& golden, DType computed) {
  return letter == 'x' ? computed : letter == 'c' ? golden.type.dtype : DType::float32;
}

CaseRun::CaseRun(const OpCase& which, const CaseMode& mode, const std::vector<Value>& inputs, Backend& backend,
                 KernelChoices& choices)
    : backend_(backend), choices_(choices), gradients_(inputs.size(), no_tensor) {
  graph_.training = true;
  graph_.compute = mode.dtype;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const char letter = which.inputs.at(i);
    const std::string name = "in" + std::to_string(i);
    const Role role = letter == 'c' ? Role::input : Role::parameter;
    TensorId id = graph_.add_tensor({.name = name, .type = inputs[i].type, .role = role});
    if (role == Role::parameter) graph_.parameters.push_back({.tensor = id});
    if (letter == 'x' || letter == 'f') {
      id = graph_.add_op(std::make_shared<Probe>(&gradients_[i]), {id}, name + "/probe", {})[0];
    }
    inputs_.push_back(id);
  }
  graph_.outputs = {no_tensor};
  outputs_ = which.build(graph_, inputs_);
  if (mode.fused) graph_ = fuse(std::move(graph_));
  Tensor gradient{.name = "gradient", .type = graph_.tensor(graph_.outputs[0]).type};
  output_gradient_ = graph_.add_tensor(std::move(gradient));
  backward_ = differentiate(graph_, {output_gradient_}, mode.accumulate);
  if (mode.fused) {
    backward_ = fuse(std::move(backward_));
    graph_.ops = join_ops(std::move(graph_.ops));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (which.inputs[i] == 'p') gradients_[i] = backward_.parameter_gradients.at(inputs_[i]);
  }
}

std::vector<Value> CaseRun::forward(const std::vector<Value>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) values_[inputs_[i]] = inputs[i];
  run(graph_.ops, 0);
  std::vector<Value> outputs;
  for (TensorId id : outputs_) outputs.push_back(values_.at(id));
  return outputs;
}

std::vector<Value> CaseRun::backward(const Value& output_gradient, double before) {
  values_[output_gradient_] = in_dtype(output_gradient, graph_.tensor(output_gradient_).type.dtype);
  run(backward_.ops, before);
  std::vector<Value> gradients;
  for (TensorId id : gradients_) gradients.push_back(id == no_tensor ? Value{} : values_.at(id));
  return gradients;
}

// Runs one op; a gradient that adds to another one is run as two ops if the backend has no op for both.
std::vector<Value> CaseRun::run(const std::shared_ptr<const OpDef>& def, const std::vector<Value>& inputs,
                                const std::vector<Value>& initial) {
  const auto alone = gradient_without_sum(*def);
  if (alone == nullptr || backend_.adds_gradients()) return run_op(backend_, def, inputs, initial, &choices_);
  const Value dx = run_op(backend_, alone, {inputs[0], inputs[1]}, {}, &choices_)[0];
  return run_op(backend_, std::make_shared<Add>(), {dx, inputs[2]}, {}, &choices_);
}

void CaseRun::run(const std::vector<Op>& ops, double before) {
  std::set<TensorId> written;  // gradients of parameters, to which a further op adds
  for (const Op& op : ops) {
    if (op.def->kind() == "probe") continue;
    std::vector<Value> inputs, initial;
    for (TensorId id : op.inputs) inputs.push_back(values_.at(id));
    if (op.def->kind() == "reshape") {  // an alias: no kernel runs
      inputs[0].type = graph_.tensor(op.outputs[0]).type;
      values_[op.outputs[0]] = inputs[0];
      continue;
    }
    for (TensorId id : op.outputs) {
      const Tensor& tensor = graph_.tensor(id);
      const bool accumulates = tensor.role == Role::gradient && before != 0;
      const auto count = static_cast<std::size_t>(tensor.type.shape.count());
      initial.push_back({tensor.type, std::vector<double>(accumulates ? count : 0, before)});
      if (tensor.role == Role::gradient && !written.insert(id).second) initial.back() = values_.at(id);
    }
    std::vector<Value> outputs = run(op.def, inputs, initial);
    for (std::size_t i = 0; i < outputs.size(); ++i) values_[op.outputs[i]] = std::move(outputs[i]);
  }
}

}  // namespace trainctl::test
