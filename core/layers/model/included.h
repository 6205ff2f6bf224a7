// Changes an included network by the keys `until` and `replace` of the section that includes it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/base/document.h"
#include "core/spec/choice.h"
#include "core/spec/reader.h"

namespace trainctl {

// Continues an included network from one of its layers: `model: {include: net.yaml, until: avg_pool, layers: [...]}`.
// If the section `model` has `until: LAYER`, inserts the layers of the section `included` up to LAYER before the layers
// of `model`. The weights of `included` then skip the removed and the new layers; its outputs and the `freeze` patterns
// that name removed layers are dropped. Removes the handled keys from both sections. Reports an error if `included` has
// no such layer.
void continue_network(Node& model, Node& included, Reader& reader);

// Replaces some layers of an included network: `model: {include: net.yaml, replace: {act: relu}}`.
// If the section `model` has `replace: {LAYER: layer, ...}`, these layers replace layers of the included section
// `included` and keep the names and inputs of the replaced layers. The included section's weights skip the new layers,
// and its `freeze` no longer names them. Removes the key from the section; reports an error if the included network has
// no layer of such a name.
void replace_layers(Node& model, Node& included, Reader& reader);

// continued.cpp and replaced.cpp use what follows.

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
