// Walks the layers of a model, names them and resolves their references.
#include "core/layers/model/expansion.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/normalization/normalize.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/model/names.h"
#include "core/layers/table.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

// The paths in which a name is looked up: the path of the layer's own list, then the paths of the lists around it.
std::vector<std::string> scopes_of(std::string path) {
  std::vector<std::string> scopes{path};
  while (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    path = slash == std::string::npos ? "" : path.substr(0, slash);
    scopes.push_back(path);
  }
  return scopes;
}

const LayerOptions& options_of(const Choice& choice) { return choice.as<LayerOptions>(); }

// Returns the layer's kind-specific options, without its name and its inputs, for the comparison of two uses.
// initial_state is an input of recurrent layers.
Node own_options(const Choice& choice) {
  Node node = layer_choices().find(choice.name)->write(dynamic_cast<const void*>(choice.options.get()));
  std::erase_if(node.entries, [](const Node::Entry& entry) {
    return entry.key == "name" || entry.key == "from" || entry.key == "initial_state";
  });
  return node;
}

// The largest number of layers of a network; each repetition of `repeat` counts.
constexpr std::size_t max_layers = 5'000;
// The largest number of bytes of the forward pass; the backward pass, gradients and optimizer state need a few times as
// much.
constexpr std::int64_t max_bytes = Graph::max_bytes / 16;

}  // namespace

Expansion::Expansion(const ModelOptions& model_options, const BuildOptions& build_options, Reader& build_reader)
    : model(model_options), options(build_options), reader(build_reader) {
  graph.batch = options.batch;
  graph.training = options.training;
  graph.compute = options.compute;
  for (const ModelInput& input : options.inputs) add_input(input);
}

void Expansion::add_input(const ModelInput& from) {
  const std::string name = from.name.empty() ? "input" : from.name;
  Tensor input;
  input.name = name;
  input.type = {from.sample.with_front(options.batch), from.format.dtype};
  input.role = Role::input;
  TensorId x = graph.add_tensor(std::move(input));
  graph.inputs.push_back(x);
  if (!from.format.scale.empty()) {
    x = graph.add_op(std::make_shared<Normalize>(options.compute, from.format), {x}, name, {}, {"normalized"})[0];
  } else if (options.compute != DType::float32 && from.format.dtype != DType::int32) {
    x = graph.add_op(std::make_shared<Cast>(options.compute), {x}, name, {}, {"cast"})[0];
  }
  features_[name] = {x, name, {}, no_tensor};
}

void Expansion::run() {
  std::vector<std::string> inputs;
  for (const auto& [name, feature] : features_) inputs.push_back(name);
  const Feature first = inputs.size() == 1 ? features_.begin()->second : Feature{};
  find_outputs(inputs);
  const Feature last = expand(model.layers, first, "", model.outputs.empty() ? 0 : no_output, inputs);
  const auto add_output = [this](const Feature& output) {
    graph.outputs.push_back(output.tensor);
    output_layers_.push_back(output.layer);
    graph.masks.push_back(output.mask);
  };
  if (model.outputs.empty()) add_output(last);
  for (const std::string& path : output_paths_) add_output(features_[path]);
  if (std::ranges::all_of(graph.masks, [](TensorId mask) { return mask == no_tensor; })) graph.masks.clear();
  find_added_losses();
  if (reader.ok()) check_logits();
}

void Expansion::find_added_losses() {
  for (const auto& [name, loss] : model.add_loss) {
    std::vector<TensorId>& tensors = added_losses.emplace_back();
    for (const Reference& reference : loss.from.items) tensors.push_back(read_by_added_loss(reference));
  }
}

TensorId Expansion::read_by_added_loss(const Reference& reference) {
  const Feature* feature = find(reference.name, "");
  if (feature == nullptr) {
    reader.error(reference.location, format("add_loss: there is no layer '{}'{}", reference.name,
                                            suggestion(reference.name, visible_from(""))));
    return no_tensor;
  }
  if (!has_samples_of_here(*feature)) report_steps("add_loss", reference);
  for (std::size_t i = 0; i < output_layers_.size() && i < options.logits.size(); ++i) {
    if (!options.logits[i] || output_layers_[i] != feature->layer) continue;
    reader.error(
        reference.location,
        format("the loss takes over the activation at the end of '{}', so that its output is not computed: let "
               "add_loss read another layer with this activation",
               reference.name));
  }
  return feature->tensor;
}

void Expansion::find_outputs(const std::vector<std::string>& inputs) {
  Reader ignored;
  const std::vector<std::string> names = layer_names(model.layers, "", inputs, ignored);
  for (const Reference& output : model.outputs) {
    const auto is_use = [&](const std::string& name) { return without_uses(name) == output.name; };
    const auto last = std::find_if(names.rbegin(), names.rend(), is_use);
    output_paths_.push_back(last == names.rend() ? output.name : *last);
  }
}

int Expansion::output_of(const std::string& path, int otherwise) const {
  const auto found = std::find(output_paths_.begin(), output_paths_.end(), path);
  return found == output_paths_.end() ? otherwise : static_cast<int>(found - output_paths_.begin());
}

void Expansion::check_logits() {
  for (std::size_t i = 0; i < model.outputs.size() && i < options.logits.size(); ++i) {
    if (!options.logits[i]) continue;
    const std::string& name = output_paths_[i];
    if (!read_layers_.contains(features_.at(name).layer)) continue;
    reader.error(model.outputs[i].location,
                 format("the loss takes over the activation at the end of '{}', but another layer reads its output: "
                        "end it without an activation, and let the other layer read an activation layer after it",
                        name));
  }
}

Feature Expansion::expand(const std::vector<Choice>& layers, const Feature& input, const std::string& path, int output,
                          const std::vector<std::string>& taken) {
  const std::vector<std::string> names = layer_names(layers, path, taken, reader);
  Feature previous = input;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string own_path = below(path, names[i]);
    const int own_output = output_of(own_path, i + 1 == layers.size() ? output : no_output);
    Layer layer(*this, layers[i].name, own_path, layers[i].location, own_output);
    std::vector<Feature> inputs{previous};
    const LayerOptions& layer_options = options_of(layers[i]);
    previous = {};
    const bool admitted = admit(layers[i], layer);
    if (resolve(layer_options.references(), layer, path, inputs) && admitted) {
      for (const Feature& read : inputs) read_layers_.insert(read.layer);
      previous = expand_layer(layer_options, layer, inputs);
      if (previous.known()) finish(layer, previous);
    }
    features_[layer.path()] = previous;
  }
  return previous;
}

bool Expansion::admit(const Choice& choice, const Layer& layer) {
  const auto [found, is_first] = first_uses_.emplace(without_uses(layer.path()), &choice);
  if (is_first || found->second == &choice) return true;
  const Choice& first = *found->second;
  std::string difference;
  if (first.name != choice.name) {
    difference = format("{} before, {} now", first.name, choice.name);
  } else if (options_of(choice).takes_options_of_first_use()) {
    return true;
  } else {
    const std::vector<std::string> all = differences(own_options(first), own_options(choice));
    if (all.empty()) return true;
    difference = all.front();
  }
  reader.error(choice.location,
               format("{} '{}': a name that is used again means the same layer with the same weights and options ({}): "
                      "give this layer another name, or equal options",
                      choice.name, found->first, difference),
               first.location, "first use");
  return false;
}

bool Expansion::freezes(const std::string& path) {
  bool frozen = false;
  for (const Reference& pattern : model.freeze) {
    if (blocks_above(pattern.name, without_uses(path)) < 0) continue;
    freezing_.insert(pattern.name);
    frozen = true;
  }
  return frozen;
}

Feature Expansion::expand_layer(const LayerOptions& layer_options, Layer& layer, const std::vector<Feature>& inputs) {
  if (++expanded_ > max_layers) {
    if (expanded_ > max_layers + 1) return {};
    return layer.error(format("the network has more than {} layers", max_layers), inputs[0]);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (layer.type(inputs[i]).dtype == DType::int32 && !layer_options.reads_numbers(i)) {
      return layer.error("reads values, but its input holds tokens: put an embedding before it", inputs[i]);
    }
  }
  // These layers number the samples of a batch, or compute their statistics.
  constexpr std::array by_sample{"dropout",
                                 "spatial_dropout",
                                 "gaussian_noise",
                                 "batch_normalization",
                                 "multi_head_attention",
                                 "group_query_attention",
                                 "attention",
                                 "additive_attention"};
  const bool is_by_sample =
      layer_options.numbers_samples() || std::ranges::find(by_sample, layer.kind_) != by_sample.end();
  const bool joins_steps = steps_ > 1 && is_by_sample && layer_options.changes_values_alone();
  if (steps_ > 1 && is_by_sample && !joins_steps) {
    return layer.error("it cannot be inside time_distributed: put it before or after it", inputs[0]);
  }
  try {
    Feature output = joins_steps && layer.training() ? expand_joined(layer_options, layer, inputs[0])
                                                     : layer_options.expand(layer, inputs);
    if (output.known()) {
      const MaskUse use = layer_options.mask_use();
      if (use == MaskUse::ends) output.mask = no_tensor;
      if (use == MaskUse::keeps) output.mask = inputs[0].mask;
      if (use == MaskUse::merges) output.mask = layer.merged_mask(inputs);
    }
    if (graph.bytes <= max_bytes) return output;
  } catch (const OverflowError&) {
  }
  if (std::exchange(too_large_, true)) return {};
  return layer.error("its tensors are larger than any memory", inputs[0]);
}

Feature Expansion::expand_joined(const LayerOptions& layer_options, Layer& layer, const Feature& input) {
  const Shape apart = layer.type(input).shape;
  const std::int64_t steps = std::exchange(steps_, 1);
  const Shape whole = apart.without_front().with_front(steps).with_front(apart[0] / steps);
  const TensorId joined = layer.op(std::make_shared<Reshape>(whole), {input.tensor})[0];
  const Feature output = layer_options.expand(layer, {layer.output(joined)});
  steps_ = steps;
  if (!output.known()) return {};
  return layer.output(layer.op(std::make_shared<Reshape>(apart), {output.tensor})[0]);
}

// Sets the inputs to the features that the references name. Returns false if a reference is wrong or an input is
// unknown.
bool Expansion::resolve(const std::vector<Reference>& references, const Layer& layer, const std::string& path,
                        std::vector<Feature>& inputs) {
  const Feature previous = inputs[0];
  if (!references.empty()) inputs.clear();
  bool good = true;
  for (const Reference& reference : references) {
    if (reference.name.empty()) {
      inputs.push_back(previous);
      continue;
    }
    if (const Feature* feature = find(reference.name, path)) {
      const bool reads = has_samples_of_here(*feature);
      if (!reads) report_steps(format("{} '{}'", layer.kind_, layer.path_), reference);
      good = good && reads;
      inputs.push_back(*feature);
      continue;
    }
    reader.error(reference.location, format("{} '{}': there is no layer '{}' before it{}", layer.kind_, layer.path_,
                                            reference.name, suggestion(reference.name, visible_from(path))));
    good = false;
  }
  return good && std::all_of(inputs.begin(), inputs.end(), [](const Feature& input) { return input.known(); });
}

bool Expansion::has_samples_of_here(const Feature& feature) const {
  return !feature.known() || graph.tensor(feature.tensor).type.shape[0] == options.batch * steps_;
}

void Expansion::report_steps(const std::string& reader_of, const Reference& reference) {
  reader.error(reference.location,
               format("{}: '{}' is on the other side of time_distributed, whose layers read the steps of a sample one "
                      "by one: read the input or the output of the time_distributed layer instead",
                      reader_of, reference.name));
}

bool Expansion::is_further_output(const std::string& path) const {
  const std::size_t slash = path.rfind('/');
  std::string first = path;
  if (const std::size_t at = path.rfind("@1", slash); at != std::string::npos && at + 2 == slash) first.erase(at, 2);
  return further_outputs_.contains(first);
}

const Feature* Expansion::find(const std::string& name, const std::string& path) const {
  constexpr std::string_view first_use = "@1";
  for (const std::string& scope : scopes_of(path)) {
    std::string path_of_name = below(scope, name), further;  // further: "/hidden_state" of "encoder/hidden_state"
    const std::size_t slash = path_of_name.rfind('/');
    if (slash != std::string::npos && is_further_output(path_of_name)) {
      further = path_of_name.substr(slash);
      path_of_name.resize(slash);
    }
    if (path_of_name.ends_with(first_use)) path_of_name.resize(path_of_name.size() - first_use.size());
    auto feature = features_.find(path_of_name + further);
    if (feature == features_.end()) continue;
    for (int use = 2; name.find('@') == std::string::npos; ++use) {
      const auto next = features_.find(use_of(path_of_name, use) + further);
      if (next == features_.end()) break;
      feature = next;
    }
    return &feature->second;
  }
  return nullptr;
}

std::vector<std::string> Expansion::visible_from(const std::string& path) const {
  std::vector<std::string> names;
  for (const std::string& scope : scopes_of(path)) {
    const std::string prefix = below(scope, "");
    for (const auto& [name, feature] : features_) {
      if (!name.starts_with(prefix) || name.find('/', prefix.size()) != std::string::npos) continue;
      names.push_back(name.substr(prefix.size()));
    }
  }
  return names;
}

// Names the layer's output and adds its line to the table of layers. A block gets no line if its output is the output
// of one of its own layers.
void Expansion::finish(Layer& layer, const Feature& output) {
  if (output.layer != layer.path()) return;
  Tensor& tensor = graph.tensors[static_cast<std::size_t>(output.tensor)];
  if (std::find(layer.tensors_.begin(), layer.tensors_.end(), output.tensor) != layer.tensors_.end()) {
    tensor.name = layer.path() + "/output";
  }
  layer.line_.output = tensor.type.shape.without_front();
  lines.push_back(layer.line_);
}

void Expansion::check_all_used() {
  std::set<TensorId> used(graph.outputs.begin(), graph.outputs.end());
  for (const std::vector<TensorId>& read : added_losses) used.insert(read.begin(), read.end());
  for (const Op& op : graph.ops) used.insert(op.inputs.begin(), op.inputs.end());
  for (const Reference& input : model.inputs) {
    if (!used.contains(features_.at(input.name).tensor)) {
      reader.error(input.location, format("no layer reads the input '{}'", input.name));
    }
  }
  for (const LayerLine& line : lines) {
    const auto is_read = [&](const auto& feature) {  // the output, or a further output
      const auto& [path, value] = feature;
      const bool is_further = further_outputs_.contains(path) && path.starts_with(line.name + "/");
      return (path == line.name || is_further) && used.contains(value.tensor);
    };
    if (std::ranges::any_of(features_, is_read)) continue;
    reader.error(line.location, format("{} '{}': no layer reads its output", line.kind, line.name));
  }
}

void Expansion::check_frozen() {
  std::set<std::string> names;
  for (const auto& [path, feature] : features_) names.insert(without_uses(path));
  for (const std::string& input : input_names(model)) names.erase(input.empty() ? "input" : input);
  bool found = true;
  for (const Reference& pattern : model.freeze) {
    if (freezing_.contains(pattern.name)) continue;
    found = false;
    std::string near = pattern.name;
    std::erase(near, '*');
    std::string hint = suggestion(near, {names.begin(), names.end()});
    if (hint.empty()) hint = "; `trainctl check` without `freeze` lists the layers";
    reader.error(pattern.location, format("freeze: no layer is named '{}'{}", pattern.name, hint));
  }
  const auto trains = [](const GraphParameter& parameter) { return parameter.trainable; };
  if (!found || std::any_of(graph.parameters.begin(), graph.parameters.end(), trains)) return;
  reader.error(model.freeze.front().location,
               "freeze: every layer with weights is frozen, so that nothing would train");
}

}  // namespace trainctl
