// Times patterns of ops, as one graph of cuDNN and as this project's kernels, to find out whether cuDNN's graphs are
// worth using.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/backend/cuda/cudnn/convolution.h"

namespace trainctl::cuda {

// Convolutions that represent the convolutions of ResNet-50, all without strides.
inline std::vector<ConvolutionShape> pattern_shapes(std::int64_t images, DType dtype) {
  const auto shape = [&](std::int64_t side, std::int64_t in, std::int64_t out, std::int64_t size) {
    const Window window{{size, size}, {1, 1}, {1, 1}, {size / 2, size / 2}, {size / 2, size / 2}};
    return ConvolutionShape{window, 1, {images, side, side, in}, {images, side, side, out}, dtype};
  };
  return {shape(56, 64, 64, 3), shape(56, 64, 256, 1), shape(56, 256, 64, 1), shape(28, 128, 128, 3),
          shape(14, 1024, 256, 1)};
}

// Times the convolutions of pattern_shapes() and the batch normalisation around them, in bfloat16 or float16 on
// `images` images. Calls row() with one JSON object for each of these patterns of a shape:
// - "statistics": a convolution with the sums of its result by channel, then the normalisation as a separate pass;
// - "gradient": the gradient by a convolution's input with ReLU's gradient and its column sums, then the rest of the
//   normalisation's gradient; "residual gradient": the same with another gradient added.
// Each object has "dtype", "shape", "pattern", "sums" (number of sums that the pattern computes), "ours_ms" and
// "pattern_ms" (each the sum of two steps, which are in "ours_steps_ms" and "pattern_steps_ms"), "engines" (number of
// engines that cuDNN has for the pattern), "tried" (number of engines that were timed, since engines that are compiled
// at run time take long) and "engine" (the fastest engine). If no engine runs, "pattern_ms" is null and "why" is the
// reason; if "sums" is 1, "why" is also the reason why no engine runs with two sums. Throws Error{resource} if there is
// no GPU.
void time_patterns(std::int64_t images, DType dtype, const std::function<void(const std::string&)>& row);

}  // namespace trainctl::cuda

// time_patterns() for the test program. The library of this file uses the functions of the CUDA module, so the module
// must be loaded before, with RTLD_GLOBAL.
extern "C" void trainctl_cuda_time_patterns(std::int64_t images, trainctl::DType dtype,
                                            const std::function<void(const std::string&)>& row);
