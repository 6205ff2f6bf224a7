// Replaces a preset by its layers.
#include "core/layers/model/preset.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "core/base/format.h"
#include "core/layers/model/included.h"
#include "core/spec/suggestion.h"
#include "core/spec/values.h"

namespace trainctl {
namespace {

using Parameters = std::map<std::string, Node>;

constexpr std::int64_t max_factor = std::int64_t{1} << 31;  // products of two such numbers do not overflow

std::vector<std::string> names_of(const Parameters& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, value] : parameters) names.push_back(name);
  return names;
}

// Replaces a default `$name` by the value of the other parameter.
void follow_references(const Node& declared, Parameters& parameters, Reader& reader) {
  for (const Node::Entry& entry : declared.entries) {
    Node& value = parameters[entry.key];
    const bool refers = entry.value.is_scalar() && entry.value.text.starts_with('$');
    if (!refers || !value.is_scalar() || value.text != entry.value.text) continue;  // the user may have set it
    const auto other = parameters.find(value.text.substr(1));
    const bool ends = other != parameters.end() && !(other->second.is_scalar() && other->second.text.starts_with('$'));
    if (!ends) {
      reader.error(value.location, format("the default '{}' is no parameter of this preset that has a value itself{}",
                                          value.text, suggestion(value.text.substr(1), names_of(parameters))));
    } else {
      value = Node(other->second);
    }
  }
}

// The preset's defaults, overridden by the user's values.
Parameters parameters_of(const Node& file, const Node& preset, const Node* with, Reader& reader) {
  Parameters parameters;
  if (const Node* declared = file.find("parameters")) {
    if (!declared->is_map()) reader.expected(*declared, "a map from names to defaults");
    keys_are_unique(*declared, reader);
    for (const Node::Entry& entry : declared->entries) parameters[entry.key] = entry.value;
  }
  if (with && !with->is_null()) {
    if (!with->is_map()) reader.expected(*with, "a map from parameters to values");
    keys_are_unique(*with, reader);
    for (const Node::Entry& entry : with->entries) {
      const auto parameter = parameters.find(entry.key);
      if (parameter != parameters.end()) {
        parameter->second = entry.value;
        continue;
      }
      const std::vector<std::string> names = names_of(parameters);
      std::string hint = suggestion(entry.key, names);
      if (hint.empty() && !names.empty()) hint = "; it has " + join_or(names);
      reader.error(entry.key_location, format("preset '{}' has no parameter '{}'{}", preset.text, entry.key, hint));
    }
  }
  if (const Node* declared = file.find("parameters")) follow_references(*declared, parameters, reader);
  for (const auto& [name, value] : parameters) {
    if (!value.is_null()) continue;
    reader.error(preset.location,
                 format("preset '{}' needs a value for its parameter '{}' under 'with'", preset.text, name),
                 value.location, "declared");
  }
  return parameters;
}

// The whole number of a parameter; empty for other values, which the layers that get them judge.
std::optional<std::int64_t> whole_number(const Parameters& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  if (found == parameters.end() || !found->second.is_scalar()) return std::nullopt;
  const std::string& text = found->second.text;
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < 1 || value > max_factor)
    return std::nullopt;
  return value;
}

// Reports a parameter that is not the product of two others, at one of the three that the user has set.
void check_product(const std::string& product, const std::string& count, const std::string& size,
                   const Parameters& parameters, const Node& preset, const Node* with, Reader& reader) {
  const auto whole = whole_number(parameters, product), counted = whole_number(parameters, count),
             sized = whole_number(parameters, size);
  if (!whole || !counted || !sized || *whole == *counted * *sized) return;
  SourceLocation location = preset.location;
  for (const std::string& name : {size, product, count}) {
    const Node* value = with != nullptr ? with->find(name) : nullptr;
    if (value != nullptr) location = value->location;
  }
  const std::string other_size =
      *whole % *counted == 0 ? format("{}: {}", size, *whole / *counted) : format("{} that divide {}", count, *whole);
  reader.error(location, format("preset '{}': {} must be {} * {}, but {} is {} and {} * {} is {}: set {}, or {}: {}",
                                preset.text, product, count, size, product, *whole, *counted, *sized, *counted * *sized,
                                other_size, product, *counted * *sized));
}

// Checks the parameters of which the preset says that they are products of others.
void check_products(const Node& file, const Parameters& parameters, const Node& preset, const Node* with,
                    Reader& reader) {
  const Node* products = file.find("products");
  if (products == nullptr) return;
  if (!products->is_map()) {
    return reader.error(products->location, "products must be a map from a parameter to the two whose product it is");
  }
  keys_are_unique(*products, reader);
  for (const Node::Entry& entry : products->entries) {
    const auto is_parameter = [&](const std::string& name) { return parameters.contains(name); };
    const std::vector<Node>& factors = entry.value.items;
    const bool good =
        factors.size() == 2 && is_parameter(entry.key) &&
        std::ranges::all_of(factors, [&](const Node& of) { return of.is_scalar() && is_parameter(of.text); });
    if (good) {
      check_product(entry.key, factors[0].text, factors[1].text, parameters, preset, with, reader);
    } else {
      reader.error(entry.value.location,
                   format("products: '{}' must be a parameter of this preset that is the product of two listed ones, "
                          "not of {}",
                          entry.key, flow_text(entry.value)));
    }
  }
}

// Replaces `$name` below a node by the parameter's value. `depth` is the number of levels above the node.
Node substitute(const Node& node, const Parameters& parameters, Reader& reader, std::size_t depth) {
  if (node.is_scalar() && node.text.starts_with('$')) {
    const std::string name = node.text.substr(1);
    if (const auto parameter = parameters.find(name); parameter != parameters.end()) {
      const Extent extent = extent_of(parameter->second);
      if (!reader.take(node.location, extent.values, extent.bytes)) return {};
      if (depth + extent.levels <= ConfigLimits::levels) return parameter->second;
      reader.error(node.location, format("more than {} levels", ConfigLimits::levels));
      return {};
    }
    reader.error(node.location,
                 format("'{}' is no parameter of this preset{}", node.text, suggestion(name, names_of(parameters))));
  }
  Node result;
  result.kind = node.kind;
  result.text = node.text;
  result.quoted = node.quoted;
  result.location = node.location;
  result.base_directory = node.base_directory;
  for (const Node& item : node.items) result.items.push_back(substitute(item, parameters, reader, depth + 1));
  for (const Node::Entry& entry : node.entries) {
    result.entries.push_back({entry.key, entry.key_location, substitute(entry.value, parameters, reader, depth + 1)});
  }
  return result;
}

// Reports keys that a preset's file may not have.
void check_file(const Node& file, Reader& reader) {
  if (!file.is_map()) return reader.expected(file, "a preset: a map with 'layers'");
  keys_are_unique(file, reader);
  const std::vector<std::string> keys{"shape", "parameters", "layers", "names", "products"};
  for (const Node::Entry& entry : file.entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) continue;
    reader.error(entry.key_location, format("unknown key '{}' in a preset{}", entry.key, suggestion(entry.key, keys)));
  }
  if (!file.find("layers")) reader.error(file.location, "a preset needs 'layers'");
}

// Removes the layers after the one that is named `until`.
void cut_layers(Node& layers, const Node& until, Reader& reader) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < layers.items.size(); ++i) {
    const Node& layer = layers.items[i];
    const Node* name = layer.is_map() && layer.entries.size() == 1 ? layer.entries[0].value.find("name") : nullptr;
    if (name == nullptr) continue;
    if (until.is_scalar() && name->text == until.text) {
      layers.items.resize(i + 1);
      return;
    }
    names.push_back(name->text);
  }
  reader.error(until.location,
               format("until: the preset has no layer '{}'{}", until.text, suggestion(until.text, names)));
}

// Adds the preset's names to `weights`.
void add_names(Node& weights, const Node& names) {
  if (!expand_weights(weights)) return;
  if (!weights.find("names")) weights.entries.push_back({"names", names.location, names});
}

}  // namespace

Node expand_preset(const Node& model, const PresetLoader& load, Reader& reader) {
  const Node* preset = model.find("preset");
  if (!preset || model.find("layers")) return model;  // if both are given, reading the section reports an error
  const std::size_t before = reader.count();
  if (!preset->is_scalar()) {
    reader.error(preset->location, format("preset must be a name or a path, not {}", describe(*preset)));
    return model;
  }
  const Node file = load(*preset, reader);
  if (file.is_null() && reader.count() > before) return model;
  check_file(file, reader);
  const Node* with = model.find("with");
  const Parameters parameters = parameters_of(file, *preset, with, reader);
  if (reader.count() == before) check_products(file, parameters, *preset, with, reader);
  if (reader.count() > before) return model;

  Node result = model;
  const Node* until = model.find("until");
  std::erase_if(result.entries, [](const Node::Entry& entry) { return entry.key == "with" || entry.key == "until"; });
  for (Node::Entry& entry : result.entries) {
    if (const Node* names = file.find("names"); names && entry.key == "weights") add_names(entry.value, *names);
    if (entry.key != "preset") continue;
    entry.key = "layers";
    entry.value = substitute(*file.find("layers"), parameters, reader, 2);
    if (until != nullptr && !until->is_null()) cut_layers(entry.value, *until, reader);
  }
  return reader.count() > before ? model : result;
}

}  // namespace trainctl
