// Captures the log that NCCL writes in this process.
#pragma once

#include <string>

namespace trainctl {

// While an object exists, NCCL_DEBUG and its related variables are set, so that NCCL writes a detailed log to a
// temporary file without a name. NCCL reads the variables once, at its first call: the object must be created before.
// If the user has set one of the variables, none is changed and nothing is captured.
class NcclLogCapture {
 public:
  NcclLogCapture();
  ~NcclLogCapture();
  NcclLogCapture(const NcclLogCapture&) = delete;
  NcclLogCapture& operator=(const NcclLogCapture&) = delete;

  // Returns why nothing is captured; "" if the log is captured.
  const std::string& why_not() const { return why_not_; }
  // Returns the log so far.
  std::string text() const;

 private:
  int file_ = -1;
  std::string why_not_;
};

}  // namespace trainctl
