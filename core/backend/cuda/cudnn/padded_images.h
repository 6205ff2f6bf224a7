// Images of a few channels, padded to 8 for a network's first convolution.
//
// In half precision cuDNN's convolutions take 8 channels at once: images of 3 or 4 they pad into their workspace, in
// the forward pass and again for the gradient of the kernel. Where it is faster, `normalize` writes the images padded.
#pragma once

#include <functional>

#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

inline constexpr std::int64_t padded_channels = 8;

// [N, H, W, C] that lie as [N, H, W, 8], zeros behind the C channels.
Layout padded_layout(const TensorType& images);
bool is_padded(const Layout& layout);

// Whether the op's output, images, is to lie padded: where only convolutions read it, and they and the op take less
// time in all than on images as they are. That is timed once, and recorded. `lower` lowers the op in either way.
bool writes_padded(const LowerContext& context, const std::function<Lowering(bool padded)>& lower);

// A convolution, or the gradient of its kernel, whose images lie padded: one with 8 channels, whose kernel is padded,
// or of whose gradient the rest is left out.
Lowering lower_on_padded(const LowerContext& context);

}  // namespace trainctl::cuda
