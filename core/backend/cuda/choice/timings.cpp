// Times candidates one after the other, with a log line for each result.
#include "core/backend/cuda/choice/timings.h"

#include <algorithm>

#include "core/backend/cuda/choice/timing.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"

namespace trainctl::cuda {

void Timings::measure(const std::string& candidate, const std::function<void(cudaStream_t)>& work) {
  add(candidate, [&work] { return cuda::measure(work); });
}

void Timings::add(const std::string& candidate, const std::function<double()>& time) {
  candidates_.push_back(candidate);
  seconds_.emplace_back();
  try {
    seconds_.back() = time();
    log::debug(format("timed {}: {}: {:.4f} ms", what_, candidate, 1e3 * *seconds_.back()));
  } catch (const Error& error) {
    cudaGetLastError();
    log::debug(format("{}: {} is left out: {}", what_, candidate, error.what()));
    if (std::find(reasons_.begin(), reasons_.end(), error.what()) == reasons_.end()) reasons_.push_back(error.what());
  }
}

void Timings::reject(std::size_t candidate, const std::string& why) {
  seconds_[candidate].reset();
  log::info(format("{}: {} is rejected: {}", what_, candidates_[candidate], why));
}

std::size_t Timings::fastest() const {
  std::optional<std::size_t> fastest;
  for (std::size_t i = 0; i < seconds_.size(); ++i) {
    if (seconds_[i] && (!fastest || *seconds_[i] < *seconds_[*fastest])) fastest = i;
  }
  return fastest ? *fastest : none_left();
}

std::size_t Timings::first() const {
  const auto ran =
      std::find_if(seconds_.begin(), seconds_.end(), [](const auto& seconds) { return seconds.has_value(); });
  return ran != seconds_.end() ? static_cast<std::size_t>(ran - seconds_.begin()) : none_left();
}

std::size_t Timings::none_left() const {
  require(!candidates_.empty(), "there are no candidates to choose from");
  std::string reasons;
  for (const std::string& reason : reasons_) reasons += (reasons.empty() ? "" : "; ") + reason;
  log::warning(format("{} is not timed: none of its {} candidates ran ({}); {} is used", what_, candidates_.size(),
                      reasons, candidates_.front()));
  return 0;
}

}  // namespace trainctl::cuda
