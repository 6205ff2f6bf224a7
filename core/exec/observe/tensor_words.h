// Names the tensors of a program, and what is in them, by the layers that the user wrote.
#pragma once

#include <cstdint>
#include <string>

#include "core/program/program.h"

namespace trainctl {

// What a tensor of this name is: "the output of layer 'fc1'", "the gradient of the weight 'kernel' of layer 'fc1'".
// `writer` is the path of the layer whose op wrote the tensor, which is named if the tensor is one of trainctl's own.
std::string tensor_words(const Program& program, const std::string& name, const std::string& writer);

// The name of the tensor that holds element `element` of `tensor`: a bucket, a rank's shard of a bucket and a flat
// region consist of parameters, or of their gradients, states or moving averages. Returns the name of `tensor` itself
// if it is a tensor of a layer, or if the element is in a gap.
std::string name_of_element(const Program& program, TensorId tensor, std::int64_t element);

}  // namespace trainctl
