// Ranges that Nsight Systems and Nsight Compute show around the work that the host queues; without a profiler they have
// no effect.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <string>

namespace trainctl::cuda {

class Range {
 public:
  explicit Range(const std::string& name) { nvtxRangePushA(name.c_str()); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace trainctl::cuda
