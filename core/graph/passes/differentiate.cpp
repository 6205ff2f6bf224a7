// Reverse-mode differentiation: visits the ops in reverse order, and each op emits the ops of its gradients.
#include "core/graph/passes/differentiate.h"

#include <algorithm>
#include <set>

#include "core/base/format.h"
#include "core/graph/differentiator.h"
#include "core/graph/ops/elementwise/activations.h"

namespace trainctl {
namespace {

class Tape final : public Differentiator {
 public:
  Tape(Graph& graph, const std::vector<TensorId>& output_gradients, bool accumulate)
      : graph_(graph), accumulate_(accumulate), gradients_(graph.tensors.size(), no_tensor) {
    find_needed();
    for (std::size_t i = 0; i < output_gradients.size(); ++i) {
      if (output_gradients[i] != no_tensor) contribute(graph.outputs[i], output_gradients[i]);
    }
  }

  Backward run() {
    for (std::size_t i = graph_.ops.size(); i-- > 0;) {
      const Op& op = graph_.ops[i];
      if (!reached(op) || !reads_needed(op)) continue;
      op_accumulates_ = !reads_shared_parameters(op) && (accumulate_ || adds_to_gradients(op));
      op.def->differentiate(op, *this);
    }
    return std::move(backward_);
  }

  const Tensor& tensor(TensorId id) const override { return graph_.tensor(id); }
  TensorId gradient_of(TensorId output) const override { return gradients_[index(output)]; }
  bool needs_gradient(TensorId input) const override { return needed_.contains(input); }
  bool accumulate() const override { return op_accumulates_; }

  TensorId parameter_gradient(TensorId parameter) override {
    require(needs_gradient(parameter), format("the gradient of {} is not needed", tensor(parameter).name));
    if (is_shared_parameter(parameter)) return summand_of(parameter);
    const auto known = backward_.parameter_gradients.find(parameter);
    if (known != backward_.parameter_gradients.end()) {
      require(op_accumulates_, format("an op overwrites the gradient of {}", tensor(parameter).name));
      return known->second;
    }
    Tensor gradient = tensor(parameter);
    gradient.name += "/gradient";
    gradient.role = Role::gradient;
    const TensorId id = graph_.add_tensor(std::move(gradient));
    backward_.parameter_gradients[parameter] = id;
    return id;
  }

  std::vector<TensorId> emit(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                             const Op& forward) override {
    const std::size_t count = def->outputs(types_of(inputs, graph_.tensors)).size();
    return emit_into(std::move(def), std::move(inputs), std::vector<TensorId>(count, no_tensor), forward);
  }

  std::vector<TensorId> emit_into(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                                  std::vector<TensorId> outputs, const Op& forward) override {
    const std::vector<TensorType> types = def->outputs(types_of(inputs, graph_.tensors));
    require(types.size() == outputs.size(), format("{} ({}) has {} outputs", def->kind(), forward.name, types.size()));
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (outputs[i] == no_tensor) {
        outputs[i] = add_activation(*def, types[i], i, forward);
        if (i == 0 && def->output_is_input()) graph_.tensors.back().alias_of = inputs[0];
      }
      require(tensor(outputs[i]).type == types[i],
              format("{} ({}) writes {}, which has another shape", def->kind(), forward.name, tensor(outputs[i]).name));
    }
    backward_.ops.push_back({std::move(def), std::move(inputs), outputs, forward.name, forward.location});
    return outputs;
  }

  void contribute(TensorId input, TensorId gradient) override {
    require(tensor(input).type == tensor(gradient).type,
            format("the gradient of {} has the wrong shape {}", tensor(input).name,
                   to_string(tensor(gradient).type.shape)));
    rename(gradient, input);
    TensorId& sum = gradients_[index(input)];
    if (sum == no_tensor) {
      sum = gradient;
      return;
    }
    const Op named{{}, {}, {}, graph_.tensor(input).name, graph_.tensor(input).location};
    const TensorId total = emit(std::make_shared<Add>(), {sum, gradient}, named)[0];
    rename(total, input);
    sum = total;
  }

 private:
  // Finds the tensors that need gradients: trainable parameters, and all tensors that depend on trainable parameters.
  void find_needed() {
    for (const GraphParameter& parameter : graph_.parameters) {
      if (parameter.trainable) needed_.insert(parameter.tensor);
    }
    for (const Op& op : graph_.ops) {
      if (reads_needed(op)) needed_.insert(op.outputs.begin(), op.outputs.end());
    }
  }
  bool reads_needed(const Op& op) const {
    const auto needed = [this](TensorId input) { return needs_gradient(input); };
    return op.def->peers_need_gradient() || std::any_of(op.inputs.begin(), op.inputs.end(), needed);
  }
  // Whether the gradients of the op's parameters have already been written, by a later op of the forward pass that
  // shares these parameters.
  bool adds_to_gradients(const Op& op) const {
    const auto begun = [this](TensorId input) { return backward_.parameter_gradients.contains(input); };
    const auto is_new = [&](TensorId input) {
      return tensor(input).role == Role::parameter && needs_gradient(input) && !begun(input);
    };
    const bool adds = std::any_of(op.inputs.begin(), op.inputs.end(), begun);
    require(!adds || std::none_of(op.inputs.begin(), op.inputs.end(), is_new),
            format("'{}' shares only some of its parameters with another op", op.name));
    return adds;
  }
  // Whether the tensor is an alias of a parameter, such as the output of Identity: ops that read it compute this rank's
  // summand of the parameter's gradient.
  bool is_shared_parameter(TensorId id) const {
    const TensorId of = tensor(id).alias_of;
    return of != no_tensor && tensor(of).role == Role::parameter;
  }
  bool reads_shared_parameters(const Op& op) const {
    return std::any_of(op.inputs.begin(), op.inputs.end(), [this](TensorId id) { return is_shared_parameter(id); });
  }
  TensorId summand_of(TensorId shared) {
    require(gradient_of(shared) == no_tensor, format("several ops read {}", tensor(shared).name));
    Tensor summand;
    summand.name = tensor(shared).name + "/gradient";
    summand.type = tensor(shared).type;
    return gradients_[index(shared)] = graph_.add_tensor(std::move(summand));
  }
  // Whether the op's gradients are computed. Other ranks wait for a gradient even if no op here passes one back.
  bool reached(const Op& op) const {
    const auto has_gradient = [this](TensorId output) { return gradient_of(output) != no_tensor; };
    return op.def->begins_gradient() || op.def->peers_need_gradient() ||
           std::any_of(op.outputs.begin(), op.outputs.end(), has_gradient);
  }

  TensorId add_activation(const OpDef& def, const TensorType& type, std::size_t output, const Op& forward) {
    Tensor activation;
    activation.name = format("{}/{}/{}", forward.name, def.kind(), output);
    activation.type = type;
    activation.location = forward.location;
    const TensorId id = graph_.add_tensor(std::move(activation));
    unnamed_.insert(id);
    return id;
  }

  // Names a new gradient after its tensor: "c1/output/gradient". Further gradients of that tensor, and their sums, are
  // numbered.
  void rename(TensorId gradient, TensorId input) {
    if (unnamed_.erase(gradient) == 0) return;
    const int number = ++gradient_counts_[input];
    graph_.tensors[index(gradient)].name =
        tensor(input).name + "/gradient" + (number > 1 ? format("_{}", number) : std::string());
  }

  Graph& graph_;
  const bool accumulate_;            // whether all ops add to the gradients of parameters
  bool op_accumulates_ = false;      // whether the op that is being differentiated adds to the gradients of parameters
  std::vector<TensorId> gradients_;  // for each forward tensor: its gradient, or no_tensor if it has none yet
  std::set<TensorId> needed_;
  std::set<TensorId> unnamed_;
  std::map<TensorId, int> gradient_counts_;
  Backward backward_;
};

}  // namespace

Backward differentiate(Graph& graph, const std::vector<TensorId>& output_gradients, bool accumulate) {
  return Tape(graph, output_gradients, accumulate).run();
}

}  // namespace trainctl
