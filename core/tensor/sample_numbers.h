// The numbers of a batch's samples in the data set. A negative number says that a place of the batch has no sample that
// counts.
#pragma once

#include <cstdint>

namespace trainctl {

// Of a micro-batch that a rank lacks: it computes on zeros, which batch normalization leaves out.
inline constexpr std::int64_t no_sample = -1;

// Of a sample that cannot be read: its place holds another sample of weight 0, by which batch normalization normalizes
// and which nothing else counts.
constexpr std::int64_t skipped_sample(std::int64_t number) { return -2 - number; }

// Whether a sample counts among those that a loss is the mean of, whatever its weight.
constexpr bool is_counted(std::int64_t number) { return number >= 0; }

}  // namespace trainctl
