// Reads the values of one sample of a batch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/view.h"

namespace trainctl {

// The `count` values of sample number `sample` of a batch of float32 or uint8; empty for other dtypes.
std::vector<float> sample_values(const View& batch, std::int64_t sample, std::int64_t count);

}  // namespace trainctl
