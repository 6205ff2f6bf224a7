// Reading a sample and checking that its numbers are finite: otherwise NaN in the data would show as a loss of NaN.
#pragma once

#include <cstdint>

#include "core/base/error.h"
#include "io/datasets/dataset.h"

namespace trainctl {

// What happens when a sample cannot be read: the run ends, or the sample counts for nothing.
enum class OnError { stop, skip };

// The error of kind `data` of a sample or target that holds NaN or infinity.
struct NonFiniteError final : Error {
  using Error::Error;
};

// Reads a sample. Throws what reading throws, and NonFiniteError with the sample's name where a value or a value of the
// target is NaN or infinite as float32; its remedy names `on_error: skip` unless samples are skipped.
void read_finite(const Dataset& dataset, std::int64_t index, bool skips, Sample& sample);

}  // namespace trainctl
