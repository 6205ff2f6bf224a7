// Continues an included network from one of its layers: `model: {include: net.yaml, until: avg_pool, layers: [...]}`.
#pragma once

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

// If the section `model` has `until: LAYER`, inserts the layers of the section `included` up to LAYER before the layers
// of `model`. The weights of `included` then skip the removed and the new layers; its outputs and the `freeze` patterns
// that name removed layers are dropped. Removes the handled keys from both sections. Reports an error if `included` has
// no such layer.
void continue_network(Node& model, Node& included, Reader& reader);

}  // namespace trainctl
