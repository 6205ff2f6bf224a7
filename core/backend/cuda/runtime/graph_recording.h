// Recordings as CUDA graphs.
#pragma once

#include <functional>
#include <memory>

#include "core/backend/backend.h"

namespace trainctl::cuda {

// Captures the work that `queue` queues on the stream, and on other streams that wait for it and for which it waits
// again, as one graph. Null, with a warning, where some of the work cannot be captured; then nothing has run, and the
// stream is usable.
std::unique_ptr<Recording> record_graph(Stream& stream, const std::function<void()>& queue);

}  // namespace trainctl::cuda
