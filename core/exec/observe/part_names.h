// Names the parameter to which an element of a flat tensor belongs.
#pragma once

#include <cstdint>
#include <string>

#include "core/program/program.h"

namespace trainctl {

// The name of the tensor that holds element `element` of `tensor`: a bucket, a rank's shard of a bucket and a flat
// region consist of parameters, or of their gradients, states or moving averages. Returns the name of `tensor` itself
// if it is a tensor of a layer, or if the element is in a gap.
std::string name_of_element(const Program& program, TensorId tensor, std::int64_t element);

}  // namespace trainctl
