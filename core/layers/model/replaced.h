// A network of which other layers take the places of some: `model: {include: net.yaml, replace: {act: relu}}`.
#pragma once

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

// If the section `model` says `replace: {LAYER: layer, ...}`, these layers take the places of those of `included`, the
// section that it includes: with their names and inputs. Their weights are skipped in the included section's, and they
// are not frozen by it. Removes the key from the section; reports a layer that there is not.
void replace_layers(Node& model, Node& included, Reader& reader);

}  // namespace trainctl
