// The layers that there are: one line each in table.cpp.
#pragma once

#include "core/spec/values.h"

namespace trainctl {

const ChoiceTable& layer_choices();
using LayerList = ChoicesOf<layer_choices>;

}  // namespace trainctl
