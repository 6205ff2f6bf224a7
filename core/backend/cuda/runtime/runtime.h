// The functions of this folder that the CUDA backend calls: copies in one launch, marks, recordings, and measured
// peaks.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <span>

#include "core/backend/backend.h"

namespace trainctl::cuda {

class Device;

// Implements Backend::copy_all(). Copies a large range by a cudaMemcpyAsync of its own if its source or destination is
// not aligned to 16 bytes.
void copy_ranges(std::span<const CopyRange> ranges, cudaStream_t stream);

// Timestamps of the GPU's progress in memory that the host reads.
std::unique_ptr<Marks> make_marks(int count);

// Captures the work that `queue` queues as one CUDA graph: the work on the stream, and on other streams that wait for
// the stream and for which the stream waits in turn. Returns null and logs a warning if some of the work cannot be
// captured; in this case no work has run, and the stream is usable.
std::unique_ptr<Recording> record_graph(Stream& stream, const std::function<void()>& queue);

// Measures large products of cuBLASLt in float32 and bfloat16, and a = b + s * c over arrays larger than the caches.
Peaks measure_peaks(const Device& device);

}  // namespace trainctl::cuda
