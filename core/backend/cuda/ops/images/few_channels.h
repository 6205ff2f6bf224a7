// Kernels of this project for a network's first convolution, of images with 3 or 4 channels, in half precision. The
// libraries' engines are made for many channels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/backend/cuda/choice/candidates.h"
#include "core/backend/cuda/cudnn/convolution.h"

namespace trainctl::cuda {

// Adds the names of this project's kernels for a convolution, or for its gradient by the kernel; adds none if they do
// not support its dtype, window or channels.
void add_few_channels_forward(const ConvolutionShape& shape, std::vector<std::string>& names);
void add_few_channels_gradient(const ConvolutionShape& shape, std::vector<std::string>& names);

// The candidate with such a name; empty for other names, and for shapes that the kernels do not support. The forward
// pass reads its kernel in cuDNN's layout, "ohwi". The gradient does not include the gradient of the bias.
std::optional<Candidate> few_channels_forward(const LowerContext& context, const ConvolutionShape& shape, bool bias,
                                              const ActivationFunction& function, const std::string& name);
std::optional<Candidate> few_channels_gradient(const LowerContext& context, const ConvolutionShape& shape,
                                               bool accumulate, const std::string& name);

}  // namespace trainctl::cuda
