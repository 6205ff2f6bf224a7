// The numbers of a batch's samples in the data set. A negative number marks a position of the batch whose sample is
// missing or cannot be read.
#pragma once

#include <cstdint>

namespace trainctl {

// The number of a missing sample, in a micro-batch for which a rank has no samples: the rank computes on zeros, which
// batch normalization ignores.
inline constexpr std::int64_t no_sample = -1;

// The number of a sample that cannot be read. Its position holds another sample with weight 0, which batch
// normalization includes in its statistics and everything else ignores.
constexpr std::int64_t skipped_sample(std::int64_t number) { return -2 - number; }

// Whether a sample counts for the mean of losses, which is their sum divided by the number of counted samples. The
// sample's weight has no influence on this.
constexpr bool is_counted(std::int64_t number) { return number >= 0; }

}  // namespace trainctl
