// Appends a layer's parameters, statistics and ops to the graph.
#include "core/layers/layer.h"

#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/graph/ops/masks.h"
#include "core/layers/activations.h"
#include "core/layers/expression/layer_expression.h"
#include "core/layers/model/expansion.h"
#include "core/layers/model/names.h"

namespace trainctl {

Layer::Layer(Expansion& expansion, std::string kind, std::string path, SourceLocation location, int output)
    : expansion_(expansion),
      kind_(std::move(kind)),
      path_(std::move(path)),
      location_(std::move(location)),
      output_(output),
      frozen_(expansion.freezes(path_)) {
  line_.name = path_;
  line_.kind = kind_;
  line_.location = location_;
}

bool Layer::training() const { return expansion_.options.training; }

std::uint64_t Layer::seed() const { return expansion_.options.seed; }

const LayerOptions& Layer::first_use() const {
  return expansion_.first_uses_.at(without_uses(path_))->as<LayerOptions>();
}

Shape Layer::shape(const Feature& feature) const {
  return expansion_.graph.tensor(feature.tensor).type.shape.without_front();
}

const TensorType& Layer::type(const Feature& feature) const { return expansion_.graph.tensor(feature.tensor).type; }

DType Layer::compute() const { return expansion_.options.compute; }

Shape Layer::batch_of(const Shape& sample) const {
  return sample.with_front(expansion_.options.batch * expansion_.steps_);
}

Feature Layer::error(const std::string& message, const Feature& cause) const {
  const std::string from = cause.location.known() ? format("from '{}'", cause.layer) : "from the input";
  expansion_.reader.error(location_, format("{} '{}': {}", kind_, path_, message), cause.location, from);
  return {};
}

TensorId Layer::parameter(const std::string& name, const Shape& shape, Initializer initializer, bool decay,
                          Penalty penalty) {
  const auto [id, is_first] = weights(name, shape, Role::parameter);
  if (!is_first) return id;
  if (initializer.name == "identity" && shape.rank() != 2) {
    expansion_.reader.error(location_, format("{} '{}': the initializer identity is for matrices, and {} is {}", kind_,
                                              path_, name, to_string(shape)));
  }
  line_.parameters = checked_add(line_.parameters, shape.count());
  if (!frozen_) line_.trainable = line_.parameters;
  expansion_.graph.parameters.push_back({id, std::move(initializer), !frozen_, decay, {}, penalty});
  return id;
}

std::pair<TensorId, bool> Layer::weights(const std::string& name, const Shape& shape, Role role) {
  Tensor tensor;
  tensor.name = without_uses(path_) + "/" + name;
  tensor.type.shape = shape;
  tensor.role = role;
  tensor.location = location_;
  Graph& graph = expansion_.graph;
  const auto known = expansion_.weights_.find(tensor.name);
  if (known == expansion_.weights_.end()) {
    const std::string full_name = tensor.name;
    return {expansion_.weights_[full_name] = graph.add_tensor(std::move(tensor)), true};
  }
  const Tensor& first = graph.tensor(known->second);
  if (first.type.shape == shape) return {known->second, false};
  if (!std::exchange(is_other_shape_, true)) {
    expansion_.reader.error(
        location_,
        format("{} '{}': a name that is used again means the same layer with the same weights, but with this input its "
               "{} is {}, and with that of its first use {}: give this layer another name",
               kind_, without_uses(path_), name, to_string(shape), to_string(first.type.shape)),
        first.location, "first use");
  }
  return {graph.add_tensor(std::move(tensor)), false};  // a new tensor, so that the layers after this one are checked
}

TensorId Layer::statistic(const std::string& name, std::int64_t channels, float momentum, float initial,
                          TensorId batch_value) {
  const auto [id, is_first] = weights(name, {channels}, Role::statistic);
  if (is_first || batch_value != no_tensor) {
    expansion_.graph.statistics.push_back({id, batch_value, momentum, initial});
  }
  return id;
}

void Layer::normalize_kernel(const Feature& of, int iterations) {
  Graph& graph = expansion_.graph;
  for (const char* name : {"/kernel", "/embeddings"}) {
    const auto kernel = expansion_.weights_.find(without_uses(of.layer) + name);
    if (kernel == expansion_.weights_.end()) continue;
    const std::int64_t columns = graph.tensor(kernel->second).type.shape.back();
    const auto [id, is_first] = weights("vector_u", {1, columns}, Role::parameter);
    if (!is_first) return;
    line_.parameters = checked_add(line_.parameters, columns);
    Initializer initializer;
    initializer.name = "truncated_normal";
    initializer.stddev = 0.02;
    graph.parameters.push_back({id, std::move(initializer), false, false});
    graph.spectral_norms.push_back({kernel->second, id, iterations});
    return;
  }
  require(false, "a layer with spectral normalization has no kernel");
}

std::vector<TensorId> Layer::op(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                                std::vector<std::string> further) {
  Graph& graph = expansion_.graph;
  // The first output is named after the op's kind; finish() renames the tensor that is the layer's output.
  std::string first(def->kind());
  if (const int number = kinds_[first]++; number > 0) first += format("_{}", number);
  further.insert(further.begin(), std::move(first));
  const auto outputs = graph.add_op(std::move(def), std::move(inputs), path_, location_, std::move(further));
  tensors_.insert(tensors_.end(), outputs.begin(), outputs.end());

  const Op& op = graph.ops.back();
  std::vector<TensorType> in, out;
  for (TensorId id : op.inputs) in.push_back(graph.tensor(id).type);
  for (TensorId id : op.outputs) out.push_back(graph.tensor(id).type);
  line_.flops += op.def->flops(in, out) / static_cast<double>(graph.batch);
  line_.ops += 1;
  return outputs;
}

TensorId Layer::activate(TensorId x, const Choice& activation) {
  const std::vector<bool>& logits = expansion_.options.logits;
  const bool folds = output_ != no_output && static_cast<std::size_t>(output_) < logits.size() &&
                     logits[static_cast<std::size_t>(output_)];
  if (folds && final_activation_of(activation) != FinalActivation::none) return x;
  if (activation.name == "softmax") return op(std::make_shared<Softmax>(), {x})[0];
  if (const std::string_view text = activation_expression(activation); !text.empty()) {
    return value_of(*this, text, {{"x", x}});
  }
  const ActivationFunction function = activation_function(activation);
  if (function.kind == ActivationKind::none) return x;
  return op(std::make_shared<Activation>(function), {x})[0];
}

void Layer::add_output(const std::string& name, TensorId tensor) {
  const std::string path = below(path_, name);
  expansion_.features_[path] = {tensor, path, location_, no_tensor};
  expansion_.further_outputs_.insert(path);
}

Feature Layer::further_output(const Feature& feature, const std::string& name) const {
  const auto found = expansion_.features_.find(below(feature.layer, name));
  return found == expansion_.features_.end() ? Feature{} : found->second;
}

TensorId Layer::merged_mask(const std::vector<Feature>& features) {
  TensorId merged = features[0].mask;
  for (const Feature& feature : features) {
    if (!feature.masked()) return no_tensor;
    if (type(output(feature.mask)) != type(output(merged))) return no_tensor;
    if (feature.mask != merged) merged = op(std::make_shared<MergeMasks>(false), {merged, feature.mask})[0];
  }
  return merged;
}

std::vector<TensorId> Layer::dropout_inputs() {
  Graph& graph = expansion_.graph;
  if (graph.step == no_tensor) {
    graph.samples = add_sample_numbers(graph);
    Tensor step;
    step.name = "step";
    step.type = {{}, DType::int64};
    step.role = Role::scalar;
    graph.step = graph.add_tensor(std::move(step));
  }
  return {graph.samples, graph.step};
}

Feature Layer::expand(const std::vector<Choice>& layers, const Feature& input, const std::string& path, int output,
                      const std::vector<std::string>& taken) {
  return expansion_.expand(layers, input, path, output, taken);
}

Feature Layer::expand_part(const std::string& kind, const LayerOptions& options, const std::string& name,
                           const std::vector<Feature>& inputs, int output_number) {
  Layer part(expansion_, kind, path_ + "/" + name, location_, output_number);
  const Feature output = expansion_.expand_layer(options, part, inputs);
  if (output.known()) expansion_.finish(part, output);
  expansion_.features_[part.path()] = output;
  return output;
}

Feature Layer::expand_for_steps(const std::vector<Choice>& layers, const Feature& input, std::int64_t steps) {
  expansion_.steps_ *= steps;
  const Feature output = expansion_.expand(layers, input, path_, model_output(), {});
  expansion_.steps_ /= steps;
  return output;
}

void Layer::add_block(const std::string& path) { expansion_.blocks.insert(path); }

}  // namespace trainctl
