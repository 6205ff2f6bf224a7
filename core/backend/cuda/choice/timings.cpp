// Timing candidates one after the other, with a log line for each result.
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
  try {
    const double seconds = time();
    log::debug(format("timed {}: {}: {:.4f} ms", what_, candidate, 1e3 * seconds));
    if (fastest_ && seconds >= least_) return;
    least_ = seconds;
    fastest_ = candidates_.size() - 1;
  } catch (const Error& error) {
    cudaGetLastError();
    log::warning(format("{}: {} is left out: {}", what_, candidate, error.what()));
    if (std::find(reasons_.begin(), reasons_.end(), error.what()) == reasons_.end()) reasons_.push_back(error.what());
  }
}

std::size_t Timings::fastest() const {
  if (fastest_) return *fastest_;
  require(!candidates_.empty(), "candidates to choose from");
  std::string reasons;
  for (const std::string& reason : reasons_) reasons += (reasons.empty() ? "" : "; ") + reason;
  log::warning(format("{} is not timed: none of its {} candidates ran ({}); {} is taken", what_, candidates_.size(),
                      reasons, candidates_.front()));
  return 0;
}

}  // namespace trainctl::cuda
