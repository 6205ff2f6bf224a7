// Reads a sample and checks that its numbers are finite: otherwise NaN in the data would only be noticed as a loss of
// NaN.
#pragma once

#include <cstdint>

#include "io/datasets/dataset.h"

namespace trainctl {

// What happens if a sample cannot be read: stop: the run ends; skip: the sample gets weight 0.
enum class OnError { stop, skip };

// Reads a sample. Throws the errors of Dataset::read(), and NonFiniteError with the sample's name if a value of the
// sample or of its target is NaN or infinite as float32; the remedy suggests `on_error: skip` unless `skips` is true.
void read_finite(const Dataset& dataset, std::int64_t index, bool skips, Sample& sample);

}  // namespace trainctl
