// Ranges that Nsight Systems and Compute show around what the host queues; nothing where no profiler is attached.
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
