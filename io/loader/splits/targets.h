// The target of a sample in a batch: its values, the number of its class or a one-hot vector of it, or a mask with a
// class for each pixel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/metrics/target_encoding.h"
#include "io/datasets/dataset.h"

namespace trainctl {

// Writes the target of a sample that is no mask. Of targets that are values, these are `values`, info().target.count()
// of them; otherwise the data set has the classes.
void write_target(const Dataset& dataset, std::int64_t number, const float* values, TargetEncoding form, std::byte* to);

// Writes the classes of a mask's pixels, which lie side by side, in a form; a pixel of no_class counts as class 0.
void write_mask(const std::uint8_t* mask, std::int64_t pixels, std::int64_t classes, TargetEncoding form,
                std::byte* to);

// Writes the weight of each pixel: 0 for no_class, else 1.
void write_mask_weights(const std::uint8_t* mask, std::int64_t pixels, float* to);

}  // namespace trainctl
