// The stream that runs each task immediately.
#include "core/backend/immediate_stream.h"

#include <utility>

namespace trainctl {

void ImmediateStream::enqueue(HostTask task) {
  try {
    task.run(task.context);
  } catch (...) {
    if (!error_) error_ = std::current_exception();
  }
}

void ImmediateStream::synchronize() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace trainctl
