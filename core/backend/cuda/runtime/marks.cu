// Timestamps that the GPU writes into page-locked host memory.
#include "core/backend/cuda/runtime/runtime.h"

#include "core/backend/cuda/device/clock.h"
#include "core/backend/cuda/device/launch.h"
#include "core/backend/cuda/runtime/handle.h"
#include "core/backend/cuda/runtime/streams.h"

namespace trainctl::cuda {
namespace {

__global__ void set_mark(volatile unsigned long long* times, volatile int* last, int mark) {
  times[mark] = nanoseconds();
  *last = mark;
}

// About the time that the host needs to queue an op of several kernels.
constexpr unsigned long long held_nanoseconds = 50000;

__global__ void spin() {
  const unsigned long long start = nanoseconds();
  while (nanoseconds() - start < held_nanoseconds) {
  }
}

class MappedMarks final : public Marks {
 public:
  explicit MappedMarks(int count) {
    // Loads the kernels now, since a mark may first be set during a capture.
    load_kernel(set_mark);
    load_kernel(spin);
    void* memory = nullptr;
    const auto bytes = (static_cast<std::size_t>(count) + 1) * sizeof(unsigned long long);
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped), "cudaHostAlloc");
    memory_.reset(memory);
    times_ = static_cast<volatile unsigned long long*>(memory);
    for (int i = 0; i <= count; ++i) times_[i] = 0;
    last_ = reinterpret_cast<volatile int*>(times_ + count);
    *last_ = -1;
    void* device_memory = nullptr;
    check(cudaHostGetDevicePointer(&device_memory, memory, 0), "cudaHostGetDevicePointer");
    device_times_ = static_cast<volatile unsigned long long*>(device_memory);
    device_last_ = reinterpret_cast<volatile int*>(device_times_ + count);
  }

  void set(int mark, Stream& stream) override {
    launch(set_mark, 1, 1, stream_of(stream), device_times_, device_last_, mark);
  }
  void hold(Stream& stream) override { launch(spin, 1, 1, stream_of(stream)); }
  double seconds(int mark) const override { return 1e-9 * static_cast<double>(times_[mark]); }
  int last() const override { return *last_; }

 private:
  std::unique_ptr<void, Destroy<cudaFreeHost>> memory_;
  volatile unsigned long long* times_ = nullptr;  // addresses for the host
  volatile int* last_ = nullptr;
  volatile unsigned long long* device_times_ = nullptr;  // addresses for the GPU
  volatile int* device_last_ = nullptr;
};

}  // namespace

std::unique_ptr<Marks> make_marks(int count) { return std::make_unique<MappedMarks>(count); }

}  // namespace trainctl::cuda
