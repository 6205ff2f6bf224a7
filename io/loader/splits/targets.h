// Writes the target of a sample to a batch: its values, its class as a number or one-hot vector, or a mask with a class
// for each pixel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/metrics/target_encoding.h"
#include "io/datasets/dataset.h"

namespace trainctl {

// Writes the target of a sample that is not a mask. If targets are values, writes the info().target.count() `values`;
// otherwise writes the sample's class, or the classes of its positions, which it reads from the data set.
void write_target(const Dataset& dataset, std::int64_t number, const float* values, TargetEncoding encoding,
                  std::byte* to);

// Writes the classes of a mask's pixels, which are contiguous, in an encoding; pixels with no_class get class 0.
void write_mask(const std::uint8_t* mask, std::int64_t pixels, std::int64_t classes, TargetEncoding encoding,
                std::byte* to);

// Writes the weight of each pixel: 0 for no_class, otherwise 1.
void write_mask_weights(const std::uint8_t* mask, std::int64_t pixels, float* to);

}  // namespace trainctl
