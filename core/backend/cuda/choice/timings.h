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

// The times of several candidates for one computation. Each time is logged, and so is a candidate that fails although
// its library offered it.
class Timings {
 public:
  // `what` names the computation: "conv2d 'conv1' (vgg.yaml:12:7)".
  explicit Timings(std::string what) : what_(std::move(what)) {}

  // Times the next candidate: by the work that it queues, or by a function that returns its seconds.
  void measure(const std::string& candidate, const std::function<void(cudaStream_t)>& work);
  void add(const std::string& candidate, const std::function<double()>& time);
  // Does not take a candidate that ran, and logs why.
  void reject(std::size_t candidate, const std::string& why);
  // The index of the fastest candidate, and of the first one. Where none is left, 0, with a warning that says why.
  std::size_t fastest() const;
  std::size_t first() const;

 private:
  std::size_t none_left() const;

  std::string what_;
  std::vector<std::string> candidates_;
  std::vector<std::optional<double>> seconds_;  // by candidate; none where it failed or was rejected
  std::vector<std::string> reasons_;            // why candidates failed
};

}  // namespace trainctl::cuda
