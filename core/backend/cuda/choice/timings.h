// Chooses the fastest of several candidates for the same computation.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/cuda/runtime/handle.h"

namespace trainctl::cuda {

// The times of several candidates for one computation. Logs each time, and each candidate that fails although its
// library offered it.
class Timings {
 public:
  // `what` names the computation: "conv2d 'conv1' (vgg.yaml:12:7)".
  explicit Timings(std::string what) : what_(std::move(what)) {}

  // Times the next candidate: by the work that it queues, or by a function that returns its seconds.
  void measure(const std::string& candidate, const std::function<void(cudaStream_t)>& work);
  void add(const std::string& candidate, const std::function<double()>& time);
  // Excludes a candidate that ran, and logs the reason.
  void reject(std::size_t candidate, const std::string& why);
  // The index of the fastest candidate, and of the first candidate that ran and was not rejected. If none is left, both
  // return 0 and log a warning with the reasons.
  std::size_t fastest() const;
  std::size_t first() const;

 private:
  std::size_t none_left() const;

  std::string what_;
  std::vector<std::string> candidates_;
  std::vector<std::optional<double>> seconds_;  // time of each candidate; empty if it failed or was rejected
  std::vector<std::string> reasons_;            // the errors of the candidates that failed
};

}  // namespace trainctl::cuda
