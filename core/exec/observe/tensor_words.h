// Says in words what a tensor of a program is, by the layer that the user wrote.
#pragma once

#include <string>

#include "core/program/program.h"

namespace trainctl {

// What a tensor of this name is: "the output of layer 'fc1'", "the gradient of the weight 'kernel' of layer 'fc1'".
// `writer` is the path of the layer whose op wrote the tensor, which is named if the tensor is one of trainctl's own.
std::string tensor_words(const Program& program, const std::string& name, const std::string& writer);

}  // namespace trainctl
