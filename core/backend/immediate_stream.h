// A stream that runs everything at once, on the calling thread: the CPU's compute stream, and on every device the
// stream of collectives between hosts' memories.
#pragma once

#include <exception>

#include "core/backend/stream.h"

namespace trainctl {

// An exception stops nothing and surfaces in synchronize(), the first wins.
class ImmediateStream final : public Stream {
 public:
  void enqueue(HostTask task) override;
  void synchronize() override;

 private:
  std::exception_ptr error_;
};

}  // namespace trainctl
