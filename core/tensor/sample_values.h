// The values of one sample of a batch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/view.h"

namespace trainctl {

// Those of a sample of `count` values, of a batch of float32 or bytes; none of other types.
std::vector<float> sample_values(const View& batch, std::int64_t sample, std::int64_t count);

}  // namespace trainctl
