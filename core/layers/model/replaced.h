// Replaces some layers of an included network: `model: {include: net.yaml, replace: {act: relu}}`.
#pragma once

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

// If the section `model` has `replace: {LAYER: layer, ...}`, these layers replace layers of the included section
// `included` and keep the names and inputs of those. The included section's weights skip them, and its `freeze` does
// not name them any more. Removes the key from the section; reports an error if there is no layer of such a name.
void replace_layers(Node& model, Node& included, Reader& reader);

}  // namespace trainctl
