// Functions that layers with one learned vector share, and layers that take a single position of a sequence.
#pragma once

#include <cstdint>

#include "core/layers/layer.h"

namespace trainctl {

// Returns position `index` of the sequences x [N, T, C], as [N, 1, C].
TensorId take_position(Layer& layer, TensorId x, std::int64_t index);

// Returns the vector of the parameter `vector` [1, C] for each sample of x [N, ..., C], as [N, 1, C]. Only the shape of
// x is used.
TensorId repeat_for_samples(Layer& layer, TensorId x, TensorId vector);

}  // namespace trainctl
