// Keeps the first layers of an included network and appends others.
#include "core/layers/model/included.h"

#include <algorithm>
#include <set>

#include "core/base/format.h"
#include "core/layers/model/names.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

// Returns the names of the layers from number `first` on that may have weights.
std::set<std::string> with_weights(const NamedLayers& layers, std::size_t first) {
  std::set<std::string> found;
  for (std::size_t i = first; i < layers.names.size(); ++i) {
    if (layers.may_have_weights(i)) found.insert(without_uses(layers.names[i]));
  }
  return found;
}

}  // namespace

void continue_network(Node& model, Node& included, Reader& reader) {
  const Node* key = model.find("until");
  if (key == nullptr || !key->is_scalar()) return;
  const Node until = *key;
  const Node* list = included.find("layers");
  if (list == nullptr || !list->is_sequence()) {
    reader.error(until.location, "until names a layer of the included network, but that network has no list of layers");
    return;
  }
  const NamedLayers before(*list);
  if (before.names.empty()) return;
  const auto last = std::find(before.names.rbegin(), before.names.rend(), until.text);
  if (last == before.names.rend()) {
    reader.error(until.location,
                 format("the included network has no layer '{}'{}", until.text, suggestion(until.text, before.names)));
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
  std::set<std::string> cut = with_weights(before, kept), fresh = with_weights(after, kept), removed;
  for (std::size_t i = 0; i < kept; ++i) {  // later uses of a layer that is kept
    cut.erase(before.names[i]);
    fresh.erase(before.names[i]);
  }
  const std::set<std::string> present(after.names.begin(), after.names.end());
  std::copy_if(before.names.begin(), before.names.end(), std::inserter(removed, removed.end()),
               [&](const std::string& name) { return !present.contains(name); });
  cut.insert(fresh.begin(), fresh.end());
  skip_weights(included, cut);
  unfreeze(included, removed);
  for (const char* key : {"layers", "outputs"}) erase_key(included, key);
}

}  // namespace trainctl
