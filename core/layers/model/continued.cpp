// Cuts the layers of a network and puts others behind them.
#include "core/layers/model/continued.h"

#include <algorithm>
#include <set>

#include "core/base/format.h"
#include "core/layers/model/names.h"
#include "core/layers/table.h"
#include "core/spec/suggestion.h"
#include "core/spec/values.h"

namespace trainctl {
namespace {

Node* find_in(Node& map, const std::string& key) { return const_cast<Node*>(std::as_const(map).find(key)); }

void erase_key(Node& map, const std::string& key) {
  std::erase_if(map.entries, [&](const Node::Entry& entry) { return entry.key == key; });
}

// The layers of a list with their names; none if they cannot be read, which is reported later.
struct NamedLayers {
  std::vector<Choice> layers;
  std::vector<std::string> names;

  explicit NamedLayers(const Node& list) {
    Reader ignored;
    if (!read_choices(layer_choices(), list, ignored, layers)) return;
    names = layer_names(layers, "", {}, ignored);
  }

  // The names from a layer on of those that may have weights: layers with an initializer, and blocks.
  std::set<std::string> with_weights(std::size_t first) const {
    std::set<std::string> found;
    for (std::size_t i = first; i < names.size(); ++i) {
      const Section* section = layer_choices().find(layers[i].name);
      const bool has = std::any_of(section->keys.begin(), section->keys.end(), [](const Key& key) {
        return key.name.ends_with("_initializer") || key.name == "layers";
      });
      if (has) found.insert(without_uses(names[i]));
    }
    return found;
  }
};

// Adds patterns for the layers' tensors to `skip` of the weights, which may be the file alone.
void skip_layers(Node& weights, const std::set<std::string>& layers) {
  if (layers.empty() || weights.is_null() || (weights.is_scalar() && weights.text == "none")) return;
  if (weights.is_scalar()) {
    Node map = map_node();
    map.place = weights.place;
    map.base_directory = weights.base_directory;
    map.entries.push_back({"file", weights.place, std::move(weights)});
    weights = std::move(map);
  }
  if (!weights.is_map()) return;
  if (find_in(weights, "skip") == nullptr) append(weights, "skip", sequence_node());
  Node& skip = *find_in(weights, "skip");
  for (const std::string& layer : layers) {
    Node pattern = scalar_node(layer + "/*");
    pattern.place = weights.place;
    skip.items.push_back(std::move(pattern));
  }
}

// Drops the names of layers that are no more from the patterns of `freeze`.
void drop_patterns(Node& included, const std::set<std::string>& layers) {
  Node* freeze = find_in(included, "freeze");
  if (freeze == nullptr || !freeze->is_sequence()) return;
  std::erase_if(freeze->items, [&](const Node& item) { return layers.contains(item.text); });
}

}  // namespace

void continue_network(Node& model, Node& included, Reader& reader) {
  const Node* stated = model.find("until");
  if (stated == nullptr || !stated->is_scalar()) return;
  const Node until = *stated;
  const Node* list = included.find("layers");
  if (list == nullptr || !list->is_sequence()) {
    reader.error(until.place, "until names a layer of the network that is included, but that has no list of layers");
    return;
  }
  const NamedLayers before(*list);
  if (before.names.empty()) return;
  const auto last = std::find(before.names.rbegin(), before.names.rend(), until.text);
  if (last == before.names.rend()) {
    reader.error(until.place, format("the network that is included has no layer '{}'{}", until.text,
                                     suggestion(until.text, before.names)));
    return;
  }
  const auto kept = static_cast<std::size_t>(before.names.rend() - last);
  Node layers = *list;
  layers.items.resize(kept);
  if (Node* own = find_in(model, "layers"); own != nullptr) {
    if (!own->is_sequence()) return;  // reported when the section is read
    layers.items.insert(layers.items.end(), own->items.begin(), own->items.end());
    *own = layers;
  } else {
    append(model, "layers", layers);
  }
  erase_key(model, "until");
  const NamedLayers after(layers);
  std::set<std::string> cut = before.with_weights(kept), fresh = after.with_weights(kept), gone;
  for (std::size_t i = 0; i < kept; ++i) {  // further uses of a layer that stays
    cut.erase(before.names[i]);
    fresh.erase(before.names[i]);
  }
  const std::set<std::string> now(after.names.begin(), after.names.end());
  std::copy_if(before.names.begin(), before.names.end(), std::inserter(gone, gone.end()),
               [&](const std::string& name) { return !now.contains(name); });
  cut.insert(fresh.begin(), fresh.end());
  if (Node* weights = find_in(included, "weights"); weights != nullptr) skip_layers(*weights, cut);
  drop_patterns(included, gone);
  for (const char* key : {"layers", "outputs"}) erase_key(included, key);
}

}  // namespace trainctl
