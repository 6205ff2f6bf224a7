// Timing of patterns of ops that cuDNN may compute as one graph against this project's kernels, to find whether the
// patterns are worth using.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/backend/cuda/cudnn/convolution.h"

namespace trainctl::cuda {

// Convolutions of ResNet-50 that are representative of the others, none with strides.
inline std::vector<ConvolutionShape> pattern_shapes(std::int64_t images, DType dtype) {
  const auto shape = [&](std::int64_t side, std::int64_t in, std::int64_t out, std::int64_t size) {
    const Window window{{size, size}, {1, 1}, {1, 1}, {size / 2, size / 2}, {size / 2, size / 2}};
    return ConvolutionShape{window, 1, {images, side, side, in}, {images, side, side, out}, dtype};
  };
  return {shape(56, 64, 64, 3), shape(56, 64, 256, 1), shape(56, 256, 64, 1), shape(28, 128, 128, 3),
          shape(14, 1024, 256, 1)};
}

// Calls row() with one JSON object after the other, of ResNet-50's convolutions and the batch normalisation around them
// in bfloat16, with so many images:
// - "statistics": a convolution with its result's sums by channel, then the normalisation as a pass of its own;
// - "gradient": the gradient by a convolution's input with ReLU's gradient and its column sums, then the rest of the
//   normalisation's gradient; "residual gradient": the same with another gradient added.
// Each has "shape", "pattern", "sums" (how many the pattern computes), "ours_ms" and "pattern_ms" (each the sum of its
// two steps, in "ours_steps_ms" and "pattern_steps_ms"), "engines" (how many cuDNN has), "tried" (how many of them were
// timed: what is compiled at run time takes long), "engine" (the fastest). "pattern_ms" is null where no engine runs;
// "why" says why, and where "sums" is 1, why none runs with two. Throws Error{resource} without a GPU.
void time_patterns(std::int64_t images, const std::function<void(const std::string&)>& row);

}  // namespace trainctl::cuda

// The same for programs that load the module at run time.
extern "C" void trainctl_cuda_time_patterns(std::int64_t images, const std::function<void(const std::string&)>& row);
