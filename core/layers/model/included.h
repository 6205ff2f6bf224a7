// The parts of an included network that `until` and `replace` change.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/base/document.h"
#include "core/spec/choice.h"

namespace trainctl {

// The layers of a list with their names; none if they cannot be read, which is reported when the section is read.
struct NamedLayers {
  std::vector<Choice> layers;
  std::vector<std::string> names;

  explicit NamedLayers(const Node& list);
  // Whether it is a layer with an initializer, or a block.
  bool may_have_weights(std::size_t layer) const;
};

// The value of a key, to be changed; null where there is none.
Node* find_in(Node& map, const std::string& key);
void erase_key(Node& map, const std::string& key);

// Makes the section's `weights`, which may state the file alone, a map. False if they name no file.
bool expand_weights(Node& weights);
// Adds patterns for the layers' tensors to what the section's weights skip.
void skip_weights(Node& model, const std::set<std::string>& layers);
// Drops the names of layers from the section's patterns of `freeze`.
void unfreeze(Node& model, const std::set<std::string>& layers);

}  // namespace trainctl
