// Recordings as CUDA graphs.
#pragma once

#include <functional>
#include <memory>

#include "core/backend/backend.h"

namespace trainctl::cuda {

// What `queue` queues on the stream, and on others that wait for it and that it waits for again, as one graph. Null,
// with a warning, where something cannot be captured; then nothing has run, and the stream is usable.
std::unique_ptr<Recording> record_graph(Stream& stream, const std::function<void()>& queue);

}  // namespace trainctl::cuda
