// The choice of the fastest of several candidates for the same computation.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/cuda/runtime/handle.h"

namespace trainctl::cuda {

// The times of several ways to do the same. Each is logged, and so is one that fails although it was offered.
class Timings {
 public:
  // `what` is done: "conv2d 'conv1' (vgg.yaml:12:7)".
  explicit Timings(std::string what) : what_(std::move(what)) {}

  // Measures the next candidate: by what it queues, or by a function that gives its seconds.
  void measure(const std::string& candidate, const std::function<void(cudaStream_t)>& work);
  void add(const std::string& candidate, const std::function<double()>& time);
  // The number of the fastest, from 0. Where none ran it is the first, with a warning that says why.
  std::size_t fastest() const;

 private:
  std::string what_;
  std::vector<std::string> candidates_;
  std::vector<std::string> reasons_;  // of those that failed
  std::optional<std::size_t> fastest_;
  double least_ = 0;  // seconds
};

}  // namespace trainctl::cuda
