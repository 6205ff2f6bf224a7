// Times candidates on the GPU: memory with random values, and the time of queued work.
#pragma once

#include <cstdint>
#include <functional>

#include "core/backend/cuda/runtime/handle.h"
#include "core/tensor/dtype.h"

namespace trainctl::cuda {

// GPU memory of `bytes` bytes, filled with random values in [-1, 1) of a floating-point dtype, or with random bytes for
// another dtype. The destructor frees it.
class RandomBuffer {
 public:
  RandomBuffer(std::int64_t bytes, DType dtype);
  // Writes the same values again.
  void fill();
  template <class T = void>
  T* get() const {
    return static_cast<T*>(memory_.get());
  }

 private:
  std::int64_t bytes_;
  DType dtype_;
  std::unique_ptr<void, Destroy<cudaFree>> memory_;
};

// Seconds of the fastest of several calls of work(stream), after one call to warm up.
double measure(const std::function<void(cudaStream_t)>& work);
// Seconds of the fastest of several calls of work(), which must queue on the given stream.
double measure(cudaStream_t stream, const std::function<void()>& work);

}  // namespace trainctl::cuda
