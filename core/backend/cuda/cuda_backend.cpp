// Implements the CUDA backend: memory, copies, streams, and the calls that lower ops.
#include "core/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <cstring>

#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/images/convolution.h"
#include "core/backend/cuda/runtime/runtime.h"
#include "core/backend/cuda/runtime/streams.h"
#include "core/base/format.h"
#include "core/program/program.h"

namespace trainctl {
namespace cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const BackendOptions& options)
      : device_(device_of(options.local_rank), {options.tf32, options.deterministic, options.timing}),
        plans_({device_.cudnn(), nullptr}, options.threads),
        records_(options.record) {}

  std::string_view name() const override { return "cuda"; }
  bool on_host() const override { return false; }
  std::string fingerprint() const override { return device_.fingerprint(); }
  bool computes_in(DType dtype) const override {
    return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16;
  }
  Peaks peaks() override { return measure_peaks(device_); }

  Memory allocate(std::int64_t bytes) override {
    std::size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
    void* memory = nullptr;
    if (size > available || cudaMalloc(&memory, size) != cudaSuccess) {
      cudaGetLastError();
      throw Error(ErrorKind::resource,
                  format("GPU memory: {} were requested, {} of {} are free", byte_text(bytes),
                         byte_text(static_cast<std::int64_t>(available)), byte_text(static_cast<std::int64_t>(total))),
                  "use a smaller batch, gradient_accumulation, or a smaller network");
    }
    Memory owned{std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), [](std::byte* p) { cudaFree(p); }), bytes};
    check(cudaMemset(memory, 0, size), "cudaMemset");
    // cudaMemset returns before the memory is zero, and non-blocking streams do not wait for it.
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
    return owned;
  }

  std::int64_t free_memory() const override {
    std::size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    return static_cast<std::int64_t>(available);
  }

  Memory allocate_host(std::int64_t bytes) override {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
    void* memory = nullptr;
    check(cudaMallocHost(&memory, size), "cudaMallocHost");
    std::memset(memory, 0, size);
    return {std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), [](std::byte* p) { cudaFreeHost(p); }), bytes};
  }

  void copy(void* to, const void* from, std::int64_t bytes, Stream& stream) override {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_of(stream)),
          "cudaMemcpyAsync");
  }
  void copy_rows(void* to, std::int64_t to_stride, const void* from, std::int64_t from_stride, std::int64_t width,
                 std::int64_t rows, Stream& stream) override {
    if (width == 0 || rows == 0) return;
    check(cudaMemcpy2DAsync(to, static_cast<std::size_t>(to_stride), from, static_cast<std::size_t>(from_stride),
                            static_cast<std::size_t>(width), static_cast<std::size_t>(rows), cudaMemcpyDeviceToDevice,
                            stream_of(stream)),
          "cudaMemcpy2DAsync");
  }
  void copy_all(std::span<const CopyRange> ranges, Stream& stream) override { copy_ranges(ranges, stream_of(stream)); }

  std::unique_ptr<Stream> compute_stream() override {
    return std::make_unique<CudaStream>(waits_, CudaStream::Priority::usual);
  }
  // High priority, since the work on this stream is short and the computation waits for it.
  std::unique_ptr<Stream> asynchronous_stream() override {
    return std::make_unique<CudaStream>(waits_, CudaStream::Priority::high);
  }
  std::unique_ptr<Event> event() override { return make_event(waits_); }
  int compute_streams() const override { return 1; }
  bool asynchronous() const override { return true; }
  std::unique_ptr<Recording> record(Stream& stream, const std::function<void()>& queue) override {
    return records_ ? record_graph(stream, queue) : nullptr;
  }
  std::unique_ptr<Marks> marks(int count) override { return make_marks(count); }

  Lowering lower(const Op& op, const Program& program, const std::vector<Layout>& inputs,
                 KernelChoices& choices) override {
    return lower_op({{op, program, inputs, choices}, device_, plans_});
  }
  void prepare(const Program& program, KernelChoices& choices) override {
    std::vector<Plans::Wanted> wanted;
    const std::vector<Layout> no_layouts;
    for (const Segment& segment : program.segments) {
      for (const Op& op : segment.ops) {
        if (auto one = recorded_plan({{op, program, no_layouts, choices}, device_, plans_}))
          wanted.push_back(std::move(*one));
      }
    }
    plans_.make_all(wanted);
    plans_.settle(true);
  }
  bool updates_copies() const override { return true; }
  bool adds_gradients() const override { return true; }

 private:
  Device device_;
  Plans plans_;
  bool records_;
  std::shared_ptr<Waits> waits_ = std::make_shared<Waits>();
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options) {
  return std::make_unique<cuda::CudaBackend>(options);
}

}  // namespace trainctl
