// What the files of this folder do for the CUDA backend: copies as one launch, marks, recordings, and measured peaks.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <span>

#include "core/backend/backend.h"

namespace trainctl::cuda {

class Device;

// Backend::copy_all(). Copies large parts that are not made of aligned packs of 16 bytes on both sides by a
// cudaMemcpyAsync each.
void copy_ranges(std::span<const CopyRange> parts, cudaStream_t stream);

// Timestamps of the GPU's progress in memory that the host reads.
std::unique_ptr<Marks> make_marks(int count);

// Captures the work that `queue` queues on the stream, and on other streams that wait for it and for which it waits
// again, as one CUDA graph. Null, with a warning, if some of the work cannot be captured; then nothing has run, and the
// stream is usable.
std::unique_ptr<Recording> record_graph(Stream& stream, const std::function<void()>& queue);

// Measures large products of cuBLASLt in float32 and bfloat16, and a = b + s * c over arrays larger than the caches.
Peaks measure_peaks(const Device& device);

}  // namespace trainctl::cuda
