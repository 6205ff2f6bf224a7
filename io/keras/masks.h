// Recognizes the padding masks of a saved Keras network, which Keras 3 writes as operations on tensors.
#pragma once

#include <cstddef>
#include <vector>

namespace trainctl {

struct LayerUse;

// Whether the masks of a layer's call are those that the inputs of the call have by themselves: all tensors from which
// they are computed are padded inputs of embeddings and masking layers before that call. `masks` and `inputs` are
// indices of `uses`. Throws Json::exception if a layer is not as Keras writes it.
bool are_of_padding(const std::vector<std::size_t>& masks, const std::vector<std::size_t>& inputs,
                    const std::vector<LayerUse>& uses);

}  // namespace trainctl
