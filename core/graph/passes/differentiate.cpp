// Reverse-mode differentiation: walks the ops backwards and lets each emit the ops of its gradients.
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
    find_wanted();
    for (std::size_t i = 0; i < output_gradients.size(); ++i) {
      if (graph.outputs[i] != no_tensor) contribute(graph.outputs[i], output_gradients[i]);
    }
  }

  Backward run() {
    for (std::size_t i = graph_.ops.size(); i-- > 0;) {
      const Op& op = graph_.ops[i];
      if (!reached(op) || !wanted_by(op)) continue;
      op_accumulates_ = accumulate_ || adds_to_gradients(op);
      op.def->differentiate(op, *this);
    }
    return std::move(backward_);
  }

  const Tensor& tensor(TensorId id) const override { return graph_.tensor(id); }
  TensorId gradient_of(TensorId output) const override { return gradients_[index(output)]; }
  bool wants(TensorId input) const override { return wanted_.contains(input); }
  bool accumulate() const override { return op_accumulates_; }

  TensorId parameter_gradient(TensorId parameter) override {
    require(wants(parameter), format("the gradient of {} is not wanted", tensor(parameter).name));
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
    const std::size_t count = def->outputs(types_of(inputs)).size();
    return emit_into(std::move(def), std::move(inputs), std::vector<TensorId>(count, no_tensor), forward);
  }

  std::vector<TensorId> emit_into(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                                  std::vector<TensorId> outputs, const Op& forward) override {
    const std::vector<TensorType> types = def->outputs(types_of(inputs));
    require(types.size() == outputs.size(), format("{} ({}) has {} outputs", def->kind(), forward.name, types.size()));
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (outputs[i] == no_tensor) {
        outputs[i] = add_activation(*def, types[i], i, forward);
        if (i == 0 && def->output_is_input()) graph_.tensors.back().alias_of = inputs[0];
      }
      require(tensor(outputs[i]).type == types[i],
              format("{} ({}) writes {} in another shape", def->kind(), forward.name, tensor(outputs[i]).name));
    }
    backward_.ops.push_back({std::move(def), std::move(inputs), outputs, forward.name, forward.location});
    return outputs;
  }

  void contribute(TensorId input, TensorId gradient) override {
    require(tensor(input).type == tensor(gradient).type,
            format("the gradient of {} is {}", tensor(input).name, to_string(tensor(gradient).type.shape)));
    rename(gradient, input);
    TensorId& sum = gradients_[index(input)];
    if (sum == no_tensor) {
      sum = gradient;
      return;
    }
    const Op where{{}, {}, {}, graph_.tensor(input).name, graph_.tensor(input).location};
    const TensorId total = emit(std::make_shared<Add>(), {sum, gradient}, where)[0];
    rename(total, input);
    sum = total;
  }

 private:
  static std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }

  // Marks the tensors that depend on a trainable parameter, parameters included.
  void find_wanted() {
    for (const GraphParameter& parameter : graph_.parameters) {
      if (parameter.trainable) wanted_.insert(parameter.tensor);
    }
    for (const Op& op : graph_.ops) {
      if (wanted_by(op)) wanted_.insert(op.outputs.begin(), op.outputs.end());
    }
  }
  bool wanted_by(const Op& op) const {
    const auto wanted = [this](TensorId input) { return wants(input); };
    return op.def->peers_want_gradient() || std::any_of(op.inputs.begin(), op.inputs.end(), wanted);
  }
  // Whether a later op of the forward pass, which shares the op's parameters, has begun their gradients.
  bool adds_to_gradients(const Op& op) const {
    const auto begun = [this](TensorId input) { return backward_.parameter_gradients.contains(input); };
    const auto is_new = [&](TensorId input) {
      return tensor(input).role == Role::parameter && wants(input) && !begun(input);
    };
    const bool adds = std::any_of(op.inputs.begin(), op.inputs.end(), begun);
    require(!adds || std::none_of(op.inputs.begin(), op.inputs.end(), is_new),
            format("'{}' shares all of its parameters with another op, or none", op.name));
    return adds;
  }
  bool reached(const Op& op) const {
    const auto has_gradient = [this](TensorId output) { return gradient_of(output) != no_tensor; };
    return op.def->begins_gradient() || std::any_of(op.outputs.begin(), op.outputs.end(), has_gradient);
  }

  std::vector<TensorType> types_of(const std::vector<TensorId>& ids) const {
    std::vector<TensorType> types;
    for (TensorId id : ids) types.push_back(tensor(id).type);
    return types;
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

  // Names a new gradient after the tensor that it belongs to: "c1/output/gradient"; further gradients of that tensor
  // and their sums are numbered.
  void rename(TensorId gradient, TensorId input) {
    if (unnamed_.erase(gradient) == 0) return;
    const int number = ++parts_[input];
    graph_.tensors[index(gradient)].name =
        tensor(input).name + "/gradient" + (number > 1 ? format("_{}", number) : std::string());
  }

  Graph& graph_;
  const bool accumulate_;            // all ops add to the gradients of parameters
  bool op_accumulates_ = false;      // the op that is being differentiated does
  std::vector<TensorId> gradients_;  // by forward tensor
  std::set<TensorId> wanted_;
  std::set<TensorId> unnamed_;
  std::map<TensorId, int> parts_;
  Backward backward_;
};

}  // namespace

Backward differentiate(Graph& graph, const std::vector<TensorId>& output_gradients, bool accumulate) {
  return Tape(graph, output_gradients, accumulate).run();
}

}  // namespace trainctl
