// Replaces layers of an included network by others.
#include "core/layers/model/included.h"

#include <optional>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/layers/model/names.h"
#include "core/layers/table.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

// A layer of a list, such as `flatten` or `dense: {units: 10}`, as its kind and a map of its options.
struct WrittenLayer {
  std::string kind;
  Node options = map_node();
};

// Returns no value if the node is not written as a layer.
std::optional<WrittenLayer> written_layer(const Node& node) {
  if (node.is_scalar()) return WrittenLayer{node.text};
  if (!node.is_map() || node.entries.size() != 1) return std::nullopt;
  const Node::Entry& entry = node.entries[0];
  WrittenLayer layer{entry.key, entry.value};
  if (entry.value.is_map()) return layer;
  layer.options = map_node();
  if (entry.value.is_null()) return layer;
  const Section* section = layer_choices().find(entry.key);
  if (section != nullptr && section->shorthand.empty()) return std::nullopt;
  // An unknown layer is reported when the section is read.
  if (section != nullptr) layer.options.entries.push_back({section->shorthand, entry.value.location, entry.value});
  return layer;
}

// Returns the replacement with the name and the inputs of the layer that it replaces.
Node replacement_of(const Node& old, const Node::Entry& replacement, Reader& reader) {
  std::optional<WrittenLayer> layer = written_layer(replacement.value);
  if (!layer) {
    reader.error(
        replacement.value.location,
        format("replace needs a layer for '{0}', written as in a list of layers: {{{0}: {{dense: {{units: 5}}}}}}",
               replacement.key));
    return old;
  }
  if (const Node* name = layer->options.find("name"); name != nullptr) {
    reader.error(name->location,
                 format("the layer keeps the name '{}', which other layers and outputs refer to: leave out "
                        "the name",
                        replacement.key));
    return old;
  }
  append(layer->options, "name", scalar_node(replacement.key));
  const std::optional<WrittenLayer> before = written_layer(old);
  const Node* from = before ? before->options.find("from") : nullptr;
  if (from != nullptr && layer->options.find("from") == nullptr) append(layer->options, "from", *from);
  layer->options.location = replacement.value.location;
  Node result = map_node();
  result.location = replacement.value.location;
  result.entries.push_back({layer->kind, replacement.value.location, std::move(layer->options)});
  return result;
}

}  // namespace

void replace_layers(Node& model, Node& included, Reader& reader) {
  const Node* key = model.find("replace");
  if (key == nullptr) return;
  const Node replacements = *key;
  erase_key(model, "replace");
  if (!replacements.is_map()) {
    return reader.error(replacements.location,
                        "replace must be a map from names of layers to the layers that replace them: {predictions: "
                        "{dense: {units: 5}}}");
  }
  if (model.find("layers") != nullptr && model.find("until") == nullptr) {
    return reader.error(replacements.location,
                        "replace changes layers of the included network, but `layers` replaces all of them: leave out "
                        "one of them, or name by `until` the last layer that is kept");
  }
  Node* list = find_in(included, "layers");
  if (list == nullptr || !list->is_sequence()) {
    return reader.error(replacements.location,
                        "replace names layers of the included network, but that network has no list of layers");
  }
  const NamedLayers before(*list);
  if (before.names.empty()) return;
  std::set<std::string> replaced, with_weights;
  for (const Node::Entry& entry : replacements.entries) {
    for (std::size_t i = 0; i < before.names.size(); ++i) {
      if (without_uses(before.names[i]) != entry.key) continue;
      replaced.insert(entry.key);
      list->items[i] = replacement_of(list->items[i], entry, reader);
      if (before.may_have_weights(i)) with_weights.insert(entry.key);
    }
    if (replaced.contains(entry.key)) continue;
    reader.error(entry.key_location,
                 format("the included network has no layer '{}'{}", entry.key, suggestion(entry.key, before.names)));
  }
  const NamedLayers after(*list);
  for (std::size_t i = 0; i < after.names.size(); ++i) {
    const std::string name = without_uses(after.names[i]);
    if (replaced.contains(name) && after.may_have_weights(i)) with_weights.insert(name);
  }
  skip_weights(included, with_weights);
  unfreeze(included, replaced);
}

}  // namespace trainctl
