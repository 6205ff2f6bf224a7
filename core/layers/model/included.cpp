// Changes the weights and the frozen layers of an included network.
#include "core/layers/model/included.h"

#include <algorithm>
#include <utility>

#include "core/layers/model/names.h"
#include "core/layers/table.h"
#include "core/spec/reader.h"
#include "core/spec/values.h"

namespace trainctl {

NamedLayers::NamedLayers(const Node& list) {
  Reader ignored;
  if (!read_choices(layer_choices(), list, ignored, layers)) return;
  names = layer_names(layers, "", {}, ignored);
}

bool NamedLayers::may_have_weights(std::size_t layer) const {
  const Section* section = layer_choices().find(layers[layer].name);
  return std::any_of(section->keys.begin(), section->keys.end(),
                     [](const Key& key) { return key.name.ends_with("_initializer") || key.name == "layers"; });
}

Node* find_in(Node& map, const std::string& key) { return const_cast<Node*>(std::as_const(map).find(key)); }

void erase_key(Node& map, const std::string& key) {
  std::erase_if(map.entries, [&](const Node::Entry& entry) { return entry.key == key; });
}

bool expand_weights(Node& weights) {
  if (weights.is_scalar() && weights.text != "none") {
    Node map = map_node();
    map.location = weights.location;
    map.base_directory = weights.base_directory;
    map.entries.push_back({"file", weights.location, std::move(weights)});
    weights = std::move(map);
  }
  return weights.is_map();
}

void skip_weights(Node& model, const std::set<std::string>& layers) {
  Node* const key = find_in(model, "weights");
  if (layers.empty() || key == nullptr || !expand_weights(*key)) return;
  Node& weights = *key;
  if (find_in(weights, "skip") == nullptr) append(weights, "skip", sequence_node());
  Node& skip = *find_in(weights, "skip");
  for (const std::string& layer : layers) {
    Node pattern = scalar_node(layer + "/*");
    pattern.location = weights.location;
    skip.items.push_back(std::move(pattern));
  }
}

void unfreeze(Node& model, const std::set<std::string>& layers) {
  Node* freeze = find_in(model, "freeze");
  if (freeze == nullptr || !freeze->is_sequence()) return;
  std::erase_if(freeze->items, [&](const Node& item) { return layers.contains(item.text); });
}

}  // namespace trainctl
