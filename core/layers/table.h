// The table of layers; table.cpp has one line for each.
#pragma once

#include "core/spec/values.h"

namespace trainctl {

// Sections of layers that have no header.
Section embedding();
Section layer_normalization();
Section zero_padding2d();

const ChoiceTable& layer_choices();
using LayerList = ChoicesOf<layer_choices>;

}  // namespace trainctl
