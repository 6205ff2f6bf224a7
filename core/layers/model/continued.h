// Continues an included network from one of its layers: `model: {include: net.yaml, until: avg_pool, layers: [...]}`.
#pragma once

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

// If the section `model` has `until: LAYER`, its layers become the layers of the included section `included` up to
// LAYER, followed by its own. The included section's weights then skip the removed and the new layers; its outputs and
// the `freeze` patterns that name removed layers are dropped. Removes the keys that it handled from both sections;
// reports an error if there is no such layer.
void continue_network(Node& model, Node& included, Reader& reader);

}  // namespace trainctl
