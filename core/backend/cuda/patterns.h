// Patterns of ops that cuDNN may compute as one, timed against ours: whether they are worth a use of their own.
#pragma once

#include <functional>
#include <string>

namespace trainctl::cuda {

// Calls row() with one JSON object after the other, of ResNet-50's convolutions and the batch normalisation around them
// in bfloat16, with so many images:
// - "statistics": a convolution with its result's sums by channel, then the normalisation as a pass of its own;
// - "gradient": the gradient by a convolution's input with ReLU's gradient and its column sums, then the rest of the
//   normalisation's gradient; "residual gradient": the same with another gradient added.
// Each has "shape", "pattern", "sums" (how many the pattern computes), "ours_ms" and "pattern_ms" (each the sum of its
// two steps, in "ours_steps_ms" and "pattern_steps_ms"), "engines" (how many were tried), "engine" (the fastest);
// "pattern_ms" is null where cuDNN has no engine, with the reason in "why". Throws Error{resource} without a GPU.
void time_patterns(std::int64_t images, const std::function<void(const std::string&)>& row);

}  // namespace trainctl::cuda
