// Names, references and the walk through the layers.
#include "core/layers/expansion.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/normalize.h"
#include "core/graph/ops/shaping.h"

namespace trainctl {
namespace {

std::string below(const std::string& path, const std::string& name) { return path.empty() ? name : path + "/" + name; }

// The paths in which a name is looked up: the layer's own list, then those around it.
std::vector<std::string> scopes_of(std::string path) {
  std::vector<std::string> scopes{path};
  while (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    path = slash == std::string::npos ? "" : path.substr(0, slash);
    scopes.push_back(path);
  }
  return scopes;
}

bool is_name(const std::string& name) {
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
                              std::string::npos;
}

const LayerOptions& options_of(const Choice& choice) { return choice.as<LayerOptions>(); }

// Of a network, those that `repeat` stands for counted each time.
constexpr std::size_t most_layers = 5'000;
// Of the forward pass: backward pass, gradients and optimizer state are a few times as many.
constexpr std::int64_t most_bytes = Graph::most_bytes / 16;

}  // namespace

Expansion::Expansion(const BuildOptions& build_options, Reader& build_reader)
    : options(build_options), reader(build_reader) {
  graph.batch = options.batch;
  graph.training = options.training;
  graph.compute = options.compute;
  Tensor input;
  input.name = "input";
  input.type = {options.sample.with_front(options.batch), options.format.dtype};
  input.role = Role::input;
  TensorId x = graph.input = graph.add_tensor(std::move(input));
  if (!options.format.scale.empty()) {
    x = graph.add_op(std::make_shared<Normalize>(options.compute, options.format), {x}, "input", {}, {"normalized"})[0];
  } else if (options.compute != DType::float32 && options.format.dtype != DType::int32) {
    x = graph.add_op(std::make_shared<Cast>(options.compute), {x}, "input", {}, {"cast"})[0];
  }
  features_["input"] = {x, "input", {}};
}

Feature Expansion::expand(const std::vector<Choice>& layers, const Feature& input, const std::string& path, bool last,
                          const std::string& taken) {
  const std::vector<std::string> names = choose_names(layers, path, taken);
  Feature previous = input;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool is_last = last && i + 1 == layers.size();
    Layer layer(*this, layers[i].name, below(path, names[i]), layers[i].place, is_last);
    std::vector<Feature> inputs{previous};
    const LayerOptions& layer_options = options_of(layers[i]);
    previous = {};
    if (resolve(layer_options.references(), layer, path, inputs)) {
      previous = expand_layer(layer_options, layer, inputs);
      if (previous.known()) finish(layer, previous);
    }
    features_[layer.path()] = previous;
  }
  return previous;
}

Feature Expansion::expand_layer(const LayerOptions& layer_options, Layer& layer, const std::vector<Feature>& inputs) {
  if (++expanded_ > most_layers) {
    if (expanded_ > most_layers + 1) return {};
    return layer.error(format("the network has more than {} layers", most_layers), inputs[0]);
  }
  for (const Feature& input : inputs) {
    if (layer.type(input).dtype == DType::int32 && layer_options.tokens() == 0) {
      return layer.error("takes values, and its input holds tokens: put an embedding before it", input);
    }
  }
  try {
    const Feature output = layer_options.expand(layer, inputs);
    if (graph.bytes <= most_bytes) return output;
  } catch (const OverflowError&) {
  }
  if (std::exchange(too_large_, true)) return {};
  return layer.error("its tensors are larger than any memory", inputs[0]);
}

std::vector<std::string> Expansion::choose_names(const std::vector<Choice>& layers, const std::string& path,
                                                 const std::string& taken) {
  std::map<std::string, Place> stated;
  for (const Choice& choice : layers) {
    const auto& name = options_of(choice).name.stated;
    if (!name) continue;
    const std::string what = format("{} '{}'", choice.name, below(path, *name));
    if (!is_name(*name)) {
      reader.error(choice.place, what + ": a name consists of letters, digits, '_', '-' and '.'");
    } else if (*name == taken) {
      reader.error(choice.place, what + ": this name is taken");
    } else if (const auto [other, is_new] = stated.emplace(*name, choice.place); !is_new) {
      reader.error(choice.place, what + ": this name is taken", other->second, "by the layer");
    }
  }
  std::vector<std::string> names;
  std::map<std::string, int> numbers;
  for (const Choice& choice : layers) {
    std::string name = options_of(choice).name.stated.value_or("");
    while (name.empty()) {
      const int number = numbers[choice.name]++;
      std::string next = number == 0 ? choice.name : format("{}_{}", choice.name, number);
      if (next != taken && !stated.contains(next)) name = std::move(next);
    }
    names.push_back(std::move(name));
  }
  return names;
}

// Replaces the inputs by what the references name. False when one is wrong, or an input is unknown.
bool Expansion::resolve(const std::vector<Reference>& references, const Layer& layer, const std::string& path,
                        std::vector<Feature>& inputs) {
  if (!references.empty()) inputs.clear();
  bool good = true;
  for (const Reference& reference : references) {
    if (const Feature* feature = find(reference.name, path)) {
      inputs.push_back(*feature);
      continue;
    }
    reader.error(reference.place, format("{} '{}': there is no layer '{}' before it{}", layer.kind_, layer.path_,
                                         reference.name, suggestion(reference.name, visible_from(path))));
    good = false;
  }
  return good && std::all_of(inputs.begin(), inputs.end(), [](const Feature& input) { return input.known(); });
}

const Feature* Expansion::find(const std::string& name, const std::string& path) const {
  for (const std::string& scope : scopes_of(path)) {
    const auto feature = features_.find(below(scope, name));
    if (feature != features_.end()) return &feature->second;
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

// Names the output and writes the layer's line. A block whose output is one of its layers' has no line of its own.
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
  std::set<TensorId> used{graph.output};
  for (const Op& op : graph.ops) used.insert(op.inputs.begin(), op.inputs.end());
  for (const LayerLine& line : lines) {
    const Feature& feature = features_.at(line.name);
    if (used.contains(feature.tensor)) continue;
    reader.error(line.place, format("{} '{}': nothing takes its output", line.kind, line.name));
  }
}

}  // namespace trainctl
