// Puts layers in the places of others.
#include "core/layers/model/replaced.h"

#include <optional>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/layers/model/included.h"
#include "core/layers/model/names.h"
#include "core/layers/table.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

// A layer of a list, `flatten` or `dense: {units: 10}`, as its kind and a map of its options; nothing where it is
// neither.
struct WrittenLayer {
  std::string kind;
  Node options = map_node();
};

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

// The stated layer with the name and the inputs of another.
Node in_place_of(const Node& old, const Node::Entry& stated, Reader& reader) {
  std::optional<WrittenLayer> layer = written_layer(stated.value);
  if (!layer) {
    reader.error(stated.value.location, format("replace takes a layer for '{0}' as a list of layers has it: {{{0}: "
                                               "{{dense: {{units: 5}}}}}}",
                                               stated.key));
    return old;
  }
  if (const Node* name = layer->options.find("name"); name != nullptr) {
    reader.error(name->location,
                 format("the layer keeps the name '{}', which other layers and outputs refer to: leave out "
                        "the name",
                        stated.key));
    return old;
  }
  append(layer->options, "name", scalar_node(stated.key));
  const std::optional<WrittenLayer> before = written_layer(old);
  const Node* from = before ? before->options.find("from") : nullptr;
  if (from != nullptr && layer->options.find("from") == nullptr) append(layer->options, "from", *from);
  layer->options.location = stated.value.location;
  Node result = map_node();
  result.location = stated.value.location;
  result.entries.push_back({layer->kind, stated.value.location, std::move(layer->options)});
  return result;
}

}  // namespace

void replace_layers(Node& model, Node& included, Reader& reader) {
  const Node* key = model.find("replace");
  if (key == nullptr) return;
  const Node stated = *key;
  erase_key(model, "replace");
  if (!stated.is_map()) {
    return reader.error(
        stated.location,
        "replace has a layer for each name of one that it stands for: {predictions: {dense: {units: 5}}}");
  }
  if (model.find("layers") != nullptr && model.find("until") == nullptr) {
    return reader.error(
        stated.location,
        "replace changes the layers of the included network, and `layers` puts others in the place of "
        "all: leave out one of them, or state by `until` up to which layer the included ones are taken");
  }
  Node* list = find_in(included, "layers");
  if (list == nullptr || !list->is_sequence()) {
    return reader.error(stated.location,
                        "replace names layers of the network that is included, but that has no list of layers");
  }
  const NamedLayers before(*list);
  if (before.names.empty()) return;
  std::set<std::string> replaced, weighed;
  for (const Node::Entry& entry : stated.entries) {
    for (std::size_t i = 0; i < before.names.size(); ++i) {
      if (without_uses(before.names[i]) != entry.key) continue;
      replaced.insert(entry.key);
      list->items[i] = in_place_of(list->items[i], entry, reader);
      if (before.may_have_weights(i)) weighed.insert(entry.key);
    }
    if (replaced.contains(entry.key)) continue;
    reader.error(entry.key_location, format("the network that is included has no layer '{}'{}", entry.key,
                                            suggestion(entry.key, before.names)));
  }
  const NamedLayers after(*list);
  for (std::size_t i = 0; i < after.names.size(); ++i) {
    const std::string name = without_uses(after.names[i]);
    if (replaced.contains(name) && after.may_have_weights(i)) weighed.insert(name);
  }
  skip_weights(included, weighed);
  unfreeze(included, replaced);
}

}  // namespace trainctl
