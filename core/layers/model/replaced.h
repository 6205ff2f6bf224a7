// Replaces some layers of an included network: `model: {include: net.yaml, replace: {act: relu}}`.
#pragma once

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

// If the section `model` has `replace: {LAYER: layer, ...}`, these layers replace layers of the included section
// `included` and keep the names and inputs of the replaced layers. The included section's weights skip the new layers,
// and its `freeze` no longer names them. Removes the key from the section; reports an error if the included network has
// no layer of such a name.
void replace_layers(Node& model, Node& included, Reader& reader);

}  // namespace trainctl
