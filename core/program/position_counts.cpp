// Counts the positions of outputs whose losses leave out different positions, before the forward pass of a step.
#include "core/program/position_counts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/expression/scalar_graph.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/training/count.h"
#include "core/graph/ops/training/update.h"

namespace trainctl {
namespace {

// Why an op cannot run before the forward pass, or "".
std::string why_not_before(const Graph& graph, const Op& op) {
  if (op.get_if<Receive>() != nullptr) return "another stage of the pipeline computes its mask";
  const bool reads_parameters = std::ranges::any_of(op.inputs, [&](TensorId id) {
    const Role role = graph.tensor(id).role;
    return role == Role::parameter || role == Role::statistic;
  });
  if (reads_parameters) return format("its mask depends on the parameters of layer '{}'", op.name);
  return op.def->trait() == OpTrait::collective
             ? format("its mask depends on values of layer '{}', which ranks exchange", op.name)
             : "";
}

[[noreturn]] void refuse(const CountedOutput& output, const std::string& why) {
  throw Error(ErrorKind::config, output.location,
              format("the losses of several outputs leave out different positions, so that the positions of '{}' are "
                     "counted before the forward pass, but {}",
                     output.name, why),
              "let the mask follow from the inputs alone, for example by an embedding with mask_zero, or give all "
              "outputs the mask of the same layer");
}

class PositionCounter {
 public:
  PositionCounter(Graph& graph, const std::vector<Op>& makers, const MeshRank& rank)
      : graph_(graph), makers_(makers), rank_(rank) {}

  // Adds the ops for a sum over the step; `counted` is no_tensor if this rank adds nothing. Returns the sum.
  TensorId sum_of(const std::string& name, TensorId counted) {
    Tensor tensor;
    tensor.name = name + "/step";
    tensor.role = Role::scalar;
    tensor.placements = placed(partial, {MeshAxis::data, MeshAxis::pipeline});
    const TensorId sum = graph_.add_tensor(std::move(tensor));
    if (counted == no_tensor) {
      ops_.zero.push_back({std::make_shared<ZeroGradients>(1), {}, {sum}, name, {}});
    } else {
      ops_.first.push_back({std::make_shared<Count>(false), {counted}, {sum}, name, {}});
      ops_.later.push_back({std::make_shared<Count>(true), {counted}, {sum}, name, {}});
    }
    for (const MeshAxis axis : {MeshAxis::data, MeshAxis::pipeline}) {
      if (rank_.size(axis) > 1) ops_.last.push_back({std::make_shared<AllReduce>(axis), {sum}, {sum}, name, {}});
    }
    return sum;
  }

  // Adds copies of the ops that compute `output.counted`. Returns the copy of that tensor.
  TensorId made(const CountedOutput& output) {
    if (output.counted == no_tensor) return no_tensor;
    std::vector<const Op*> needed;
    std::vector<TensorId> tensors{output.counted};
    for (auto op = makers_.rbegin(); op != makers_.rend(); ++op) {
      const auto is_needed = [&](TensorId id) { return std::ranges::find(tensors, id) != tensors.end(); };
      if (std::ranges::none_of(op->outputs, is_needed)) continue;
      if (const std::string why = why_not_before(graph_, *op); !why.empty()) refuse(output, why);
      needed.push_back(&*op);
      tensors.insert(tensors.end(), op->inputs.begin(), op->inputs.end());
    }
    for (auto op = needed.rbegin(); op != needed.rend(); ++op) copy(**op);
    return copied(output.counted);
  }

  // Adds the op for the factor of an output's gradients.
  void add_factor(const CountedOutput& output, TensorId of_step, TensorId own, TensorId loss_scale) {
    ScalarGraph value;
    const int numerator = value.of_input(0), divisor = value.of_input(1);
    int factor = value.apply(ScalarFunction::where, divisor, value.apply(ScalarFunction::divide, numerator, divisor),
                             value.of_constant(0));
    std::vector<TensorId> inputs{of_step, own};
    if (loss_scale != no_tensor) {
      factor = value.apply(ScalarFunction::multiply, factor, value.of_input(2));
      inputs.push_back(loss_scale);
    }
    const int results[] = {factor};
    auto def = std::make_shared<Elementwise>(value.program(results), std::vector{DType::float32});
    ops_.last.push_back({std::move(def), std::move(inputs), {output.factor}, output.name, output.location});
  }

  PositionCountOps take() { return std::move(ops_); }

 private:
  TensorId copied(TensorId id) const {
    const auto found = copies_.find(id);
    return found == copies_.end() ? id : found->second;
  }

  void copy(Op op) {
    if (copies_.contains(op.outputs[0])) return;  // another output has the same mask
    for (TensorId& input : op.inputs) input = copied(input);
    for (TensorId& output : op.outputs) {
      Tensor tensor = graph_.tensor(output);
      tensor.name += "/for_count";
      if (tensor.alias_of != no_tensor) tensor.alias_of = copied(tensor.alias_of);
      output = copies_[output] = graph_.add_tensor(std::move(tensor));
    }
    ops_.first.push_back(op);
    ops_.later.push_back(std::move(op));
  }

  Graph& graph_;
  const std::vector<Op>& makers_;
  const MeshRank& rank_;
  PositionCountOps ops_;
  std::map<TensorId, TensorId> copies_;
};

}  // namespace

PositionCountOps count_positions(Graph& graph, const std::vector<CountedOutput>& outputs, const StepCount& step,
                                 const std::vector<Op>& makers, const MeshRank& rank, bool counts) {
  PositionCounter counter(graph, makers, rank);
  const TensorId of_step = counter.sum_of("count", counts && step.is_here ? step.counted : no_tensor);
  for (const CountedOutput& output : outputs) {
    const TensorId own = counter.sum_of(output.name + "_count", counts ? counter.made(output) : no_tensor);
    counter.add_factor(output, of_step, own, step.loss_scale);
  }
  return counter.take();
}

}  // namespace trainctl
