// The CPU backend: memory, copies, streams and the look-up of lowerings.
#include "core/backend/cpu/cpu_backend.h"

#include <cstdlib>
#include <cstring>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/onednn/dnnl_kernel.h"
#include "core/backend/cpu/onednn/widening.h"
#include "core/backend/cpu/runtime/peaks.h"
#include "core/backend/cpu/runtime/processor.h"
#include "core/backend/cpu/runtime/streams.h"
#include "core/backend/cpu/simd/product.h"
#include "core/backend/decomposed.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/memory.h"

namespace trainctl {
namespace cpu {
namespace {

constexpr std::int64_t alignment = 64;

// Only allocations from this size on are compared with the free memory, which is read from several files.
constexpr std::int64_t least_checked = 1 << 20;

// This number is part of the fingerprint. Raise it with every change to the set of kernels or to the bits of their
// results: choices kept on disk are then timed again.
constexpr int kernel_generation = 9;

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const BackendOptions& options)
      : threads_(options.split_threads ? 1 : options.threads),
        compute_streams_(options.split_threads ? options.threads : 1),
        timing_(options.timing) {
    check_processor();
    prepare_compute_threads(threads_);
  }

  std::string_view name() const override { return "cpu"; }
  bool on_host() const override { return true; }

  std::string fingerprint() const override {
    return format("{}, {}{}, {} threads, oneDNN {}{}, kernels {}", processor_model(), name_of(instruction_set()),
                  multiplies_pairs() ? " with bfloat16" : "", threads_, onednn::version(),
                  has_bfloat16() ? "" : " without bfloat16", kernel_generation);
  }

  bool computes_in(DType dtype) const override { return dtype == DType::float32 || dtype == DType::bfloat16; }

  Peaks peaks() override { return measure_cpu_peaks(); }

  Memory allocate(std::int64_t bytes) override {
    const std::int64_t size = (std::max<std::int64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    const std::int64_t left = size < least_checked ? 0 : free_memory();  // 0: unknown
    void* memory = left > 0 && size > left ? nullptr : std::aligned_alloc(alignment, static_cast<std::size_t>(size));
    if (memory == nullptr) {
      throw Error(ErrorKind::resource,
                  format("memory: {:.1f} MB were requested, {:.1f} MB are free", 1e-6 * static_cast<double>(size),
                         1e-6 * static_cast<double>(free_memory())),
                  "use a smaller batch, fewer ranks on this host, or a smaller network");
    }
    std::memset(memory, 0, static_cast<std::size_t>(size));
    return {std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), std::free), bytes};
  }

  std::int64_t free_memory() const override { return available_memory().value_or(0); }

  Memory allocate_host(std::int64_t bytes) override { return allocate(bytes); }

  void copy(void* to, const void* from, std::int64_t bytes, Stream& stream) override {
    if (dynamic_cast<ThreadStream*>(&stream) != nullptr) stream.synchronize();
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void copy_rows(void* to, std::int64_t to_stride, const void* from, std::int64_t from_stride, std::int64_t width,
                 std::int64_t rows, Stream& stream) override {
    if (dynamic_cast<ThreadStream*>(&stream) != nullptr) stream.synchronize();
    for (std::int64_t row = 0; row < rows; ++row) {
      std::memcpy(static_cast<std::byte*>(to) + row * to_stride,
                  static_cast<const std::byte*>(from) + row * from_stride, static_cast<std::size_t>(width));
    }
  }
  void copy_all(std::span<const CopyRange> ranges, Stream& stream) override {
    for (const CopyRange& range : ranges) copy(range.to, range.from, range.bytes, stream);
  }

  std::unique_ptr<Stream> compute_stream() override { return std::make_unique<ImmediateStream>(); }
  std::unique_ptr<Stream> asynchronous_stream() override { return std::make_unique<ThreadStream>(); }
  std::unique_ptr<Event> event() override { return make_event(); }
  int compute_streams() const override { return compute_streams_; }
  bool asynchronous() const override { return false; }
  std::unique_ptr<Recording> record(Stream&, const std::function<void()>&) override { return nullptr; }
  std::unique_ptr<Marks> marks(int) override { return nullptr; }

  void prepare(const Program&, KernelChoices&) override {}
  Lowering lower(const Op& op, const Program& program, const std::vector<Layout>& inputs,
                 KernelChoices& choices) override {
    return lower_op({op, program, inputs, choices});
  }

  bool updates_copies() const override { return false; }
  // In oneDNN only the slow reference implementation adds to its output, and adding the result from scratch memory
  // would be slower than two ops.
  bool adds_gradients() const override { return false; }

 private:
  Lowering lower_op(const OpContext& context) {
    const Op& op = context.op;
    const auto lower_sub_op = [this](const OpContext& sub_op) { return lower_op(sub_op); };
    if (needs_widening(context)) return lower_decomposed(context, widened_ops(context), lower_sub_op);
    if (const LowerFunction function = find_lowering(op.def->kind()))
      return function({context, dnnl_, threads_, timing_});
    if (op.def->decomposition().empty()) {
      throw Error(ErrorKind::config, op.location,
                  format("{} '{}': the CPU backend has no kernel for this op", op.def->kind(), op.name));
    }
    return lower_decomposed(context, op.def->decomposition(), lower_sub_op);
  }

  int threads_;
  int compute_streams_;
  bool timing_;
  OneDnn dnnl_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options) {
  require(options.threads >= 1, "the CPU backend has no compute threads");
  return std::make_unique<cpu::CpuBackend>(options);
}

}  // namespace trainctl
