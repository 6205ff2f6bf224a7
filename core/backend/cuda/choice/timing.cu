// Times candidates on the GPU.
#include "core/backend/cuda/choice/timing.h"

#include <algorithm>

#include "core/backend/cuda/device/grid.h"

namespace trainctl::cuda {
namespace {

// A multiplicative hash of the index: random enough for timing, and equal in every run.
__device__ std::uint32_t word_at(std::int64_t i) {
  return static_cast<std::uint32_t>((i + 1) * 0x9E3779B97F4A7C15ull >> 32);
}

template <class T>
__global__ void fill_values(T* data, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    data[i] = store<T>(static_cast<float>(word_at(i) >> 8) * 0x1p-23f - 1.0f);
  }
}

__global__ void fill_bytes(std::uint8_t* data, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    data[i] = static_cast<std::uint8_t>(word_at(i) >> 24);
  }
}

}  // namespace

RandomBuffer::RandomBuffer(std::int64_t bytes, DType dtype) : bytes_(bytes), dtype_(dtype) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 16))), "cudaMalloc");
  memory_.reset(memory);
  fill();
}

void RandomBuffer::fill() {
  if (dtype_ == DType::uint8) {
    launch(fill_bytes, blocks_for(bytes_), block_threads, nullptr, get<std::uint8_t>(), bytes_);
    check(cudaDeviceSynchronize(), "filling memory");
    return;
  }
  with_type(dtype_, [&](auto type) {
    using T = decltype(type);
    const std::int64_t count = bytes_ / static_cast<std::int64_t>(sizeof(T));
    launch(fill_values<T>, blocks_for(count), block_threads, nullptr, get<T>(), count);
  });
  check(cudaDeviceSynchronize(), "filling memory");
}

double measure(const std::function<void(cudaStream_t)>& work) {
  const auto stream = make<OwnedStream>(cudaStreamCreate, "cudaStreamCreate");
  return measure(stream.get(), [&] { work(stream.get()); });
}

double measure(cudaStream_t stream, const std::function<void()>& work) {
  const auto begin = make<OwnedEvent>([](cudaEvent_t* event) { return cudaEventCreate(event); }, "cudaEventCreate");
  const auto end = make<OwnedEvent>([](cudaEvent_t* event) { return cudaEventCreate(event); }, "cudaEventCreate");
  const auto milliseconds = [&](int calls) {
    check(cudaEventRecord(begin.get(), stream), "cudaEventRecord");
    for (int call = 0; call < calls; ++call) work();
    check(cudaEventRecord(end.get(), stream), "cudaEventRecord");
    check(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, begin.get(), end.get()), "cudaEventElapsedTime");
    return elapsed / static_cast<float>(calls);
  };
  milliseconds(1);  // warms up: loads kernels and libraries
  float best = milliseconds(1);
  // Times several calls in a row, so that the host queues short calls ahead of the GPU.
  const int calls = std::clamp(static_cast<int>(2 / (best + 1e-3f)), 1, 20);
  for (int repetition = 0; repetition < 4 && best < 50; ++repetition) best = std::min(best, milliseconds(calls));
  return 1e-3 * best;
}

}  // namespace trainctl::cuda
