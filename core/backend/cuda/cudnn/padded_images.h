// Images with 3 or 4 channels, padded to 8 channels for a network's first convolution.
//
// In half precision cuDNN's convolutions read 8 channels together: they pad images with 3 or 4 channels into their
// workspace, in the forward pass and again for the gradient of the kernel. If padded images are faster, `normalize`
// writes them.
#pragma once

#include <functional>

#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// The number of channels of padded images.
inline constexpr std::int64_t padded_channels = 8;

// The layout of images [N, H, W, C] stored as [N, H, W, 8], with zeros after the C channels.
Layout padded_layout(const TensorType& images);
bool is_padded(const Layout& layout);

// Whether the op should pad the images that it outputs. This is so if only convolutions read the images, and the op and
// these convolutions together take less time with padded images. The times are measured once, and the choice is
// recorded. `lower` lowers the op for either layout.
bool writes_padded(const LowerContext& context, const std::function<Lowering(bool padded)>& lower);

// Lowers a convolution, or the gradient of its kernel, on padded images, as a convolution with 8 channels: its kernel
// is padded with zeros, and the values for the added channels are removed from the gradient of the kernel.
Lowering lower_on_padded(const LowerContext& context);

}  // namespace trainctl::cuda
