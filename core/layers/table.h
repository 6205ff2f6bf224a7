// The layers that there are: one line each in table.cpp.
#pragma once

#include "core/spec/values.h"

namespace trainctl {

// Of layers that are a file alone.
Section embedding();
Section layer_normalization();
Section zero_padding2d();

const ChoiceTable& layer_choices();
using LayerList = ChoicesOf<layer_choices>;

}  // namespace trainctl
