// Functions with which `until` and `replace` change an included network.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/base/document.h"
#include "core/spec/choice.h"

namespace trainctl {

// The layers of a list with their names. It is empty if the layers cannot be read; this error is reported when the
// section is read.
struct NamedLayers {
  std::vector<Choice> layers;
  std::vector<std::string> names;

  explicit NamedLayers(const Node& list);
  // Whether the layer at index `layer` has an initializer or is a block.
  bool may_have_weights(std::size_t layer) const;
};

// Returns the value of a key, which the caller may change; null if the map does not have the key.
Node* find_in(Node& map, const std::string& key);
void erase_key(Node& map, const std::string& key);

// Turns the section's `weights`, which may be just the name of a file, into a map. Returns false if `weights` names no
// file.
bool expand_weights(Node& weights);
// Adds patterns for the layers' tensors to `weights.skip` of the section.
void skip_weights(Node& model, const std::set<std::string>& layers);
// Removes the names of the layers from the section's `freeze`.
void unfreeze(Node& model, const std::set<std::string>& layers);

}  // namespace trainctl
