// A stream that runs each task immediately, on the calling thread: the CPU's compute stream, and on every device the
// stream of collectives on host memory.
#pragma once

#include <exception>

#include "core/backend/stream.h"

namespace trainctl {

// After an exception later tasks still run; synchronize() rethrows the first exception.
class ImmediateStream final : public Stream {
 public:
  void enqueue(HostTask task) override;
  void synchronize() override;

 private:
  std::exception_ptr error_;
};

}  // namespace trainctl
