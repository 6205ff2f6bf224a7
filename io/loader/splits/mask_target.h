// Masks as targets: the forms of a mask's classes in a batch, and the weights of its pixels.
#pragma once

#include <cstdint>

#include "core/metrics/targets.h"
#include "io/loader/images/image.h"

namespace trainctl {

// Writes the classes of a mask's pixels, which lie side by side, in a form; a pixel of no_class counts as class 0.
void write_mask(const std::uint8_t* mask, std::int64_t pixels, std::int64_t classes, TargetForm form, std::byte* to);

// Writes the weight of each pixel: 0 for no_class, else 1.
void write_mask_weights(const std::uint8_t* mask, std::int64_t pixels, float* to);

}  // namespace trainctl
