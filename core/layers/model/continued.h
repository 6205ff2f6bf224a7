// A network that goes on from a layer of another: `model: {include: net.yaml, until: avg_pool, layers: [...]}`.
#pragma once

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

// If the section `model` says `until: LAYER`, its layers become those of `included`, the section that it includes, up
// to that layer, and then its own. The layers that are cut or new are skipped in the included section's weights; its
// outputs and the patterns of `freeze` that name cut layers are dropped. Removes what is dealt with from both; reports
// a layer that there is not.
void continue_network(Node& model, Node& included, Reader& reader);

}  // namespace trainctl
