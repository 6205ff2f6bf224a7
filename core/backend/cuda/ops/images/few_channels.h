// Convolutions of images with 3 or 4 channels, a network's first, by kernels of this project in half precision: the
// libraries' engines are made for many channels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/backend/cuda/choice/candidates.h"
#include "core/backend/cuda/cudnn/convolution.h"

namespace trainctl::cuda {

// Adds the names of this project's kernels for a convolution, or for its gradient by the kernel; none where they are
// not made for its dtype, window or channels.
void add_few_channels_forward(const ConvolutionShape& shape, std::vector<std::string>& names);
void add_few_channels_gradient(const ConvolutionShape& shape, std::vector<std::string>& names);

// The candidate of such a name; empty for other names, and for shapes without kernels. The forward pass takes its
// kernel as cuDNN does, "ohwi". The gradient is without that of the bias.
std::optional<Candidate> few_channels_forward(const LowerContext& context, const ConvolutionShape& shape, bool bias,
                                              const ActivationFunction& function, const std::string& name);
std::optional<Candidate> few_channels_gradient(const LowerContext& context, const ConvolutionShape& shape,
                                               bool accumulate, const std::string& name);

}  // namespace trainctl::cuda
