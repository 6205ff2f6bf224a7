// Timing of candidates on the GPU: memory with random values, and the time of queued work.
#pragma once

#include <cstdint>
#include <functional>

#include "core/backend/cuda/runtime/handle.h"
#include "core/tensor/dtype.h"

namespace trainctl::cuda {

// GPU memory of so many bytes, filled with random values in [-1, 1) of a floating-point dtype, or with random bytes;
// freed with the owner.
class RandomBuffer {
 public:
  RandomBuffer(std::int64_t bytes, DType dtype);
  template <class T = void>
  T* get() const {
    return static_cast<T*>(memory_.get());
  }

 private:
  std::unique_ptr<void, Destroy<cudaFree>> memory_;
};

// Seconds of one call of work(stream), the best of some; the first of all warms up.
double measure(const std::function<void(cudaStream_t)>& work);
// The same of work that queues on this stream.
double measure(cudaStream_t stream, const std::function<void()>& work);

}  // namespace trainctl::cuda
