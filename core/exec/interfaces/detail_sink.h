// The sink of what a run shows of itself beside its numbers: distributions of tensors, and samples with predictions.
// Implemented by io/metrics; used on rank 0 only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/metrics/histogram.h"
#include "core/tensor/shape.h"

namespace trainctl {

// A sample of the validation data and what the network takes it for.
struct JudgedSample {
  std::int64_t number = 0;           // in the part of the data
  int label = 0;                     // its class
  std::vector<float> probabilities;  // of all classes
  Shape shape;                       // of the pixels: height, width, 1 or 3 channels
  std::vector<float> pixels;         // as the network gets them
};

class DetailSink {
 public:
  virtual ~DetailSink() = default;

  // The values of a tensor ("weights/conv1/kernel") after so many steps.
  virtual void histogram(std::int64_t step, const std::string& name, const Histogram& values) = 0;
  // The same samples after each evaluation, in the order of their numbers.
  virtual void samples(std::int64_t step, std::span<const JudgedSample> judged) = 0;
};

}  // namespace trainctl
