// The sink of a run's distributions of tensors and of samples with predictions. Implemented by io/metrics; used on rank
// 0 only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/metrics/histogram.h"
#include "core/tensor/shape.h"

namespace trainctl {

// A sample of the validation data and the network's prediction for it.
struct JudgedSample {
  std::int64_t number = 0;           // number of the sample in the split
  int label = 0;                     // class of the sample
  std::vector<float> probabilities;  // predicted probabilities of all classes
  Shape shape;                       // shape of the pixels: height, width, 1 or 3 channels
  std::vector<float> pixels;         // pixels as the network reads them
};

class DetailSink {
 public:
  virtual ~DetailSink() = default;

  // Writes the distribution of a tensor's values ("weights/conv1/kernel") after `step` steps.
  virtual void histogram(std::int64_t step, const std::string& name, const Histogram& values) = 0;
  // Writes the samples after an evaluation, always the same samples, in the order of their numbers.
  virtual void samples(std::int64_t step, std::span<const JudgedSample> judged) = 0;
};

}  // namespace trainctl
