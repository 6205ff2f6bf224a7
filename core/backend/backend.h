// Backend: the interface of a device. A port to a new device implements the interfaces in backend.h, kernel.h and
// communicator.h alone.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend/kernel.h"
#include "core/backend/memory.h"
#include "core/backend/stream.h"
#include "core/graph/tensor_type.h"
#include "core/tensor/layout.h"

namespace trainctl {

struct Op;
struct Program;

// Returns the logical layout of a type.
inline Layout logical_layout(const TensorType& type) { return {type.dtype, "", type.bytes()}; }

// Rounds the bytes of a section of a workspace up to a multiple of 256, so that the next section is aligned for every
// kernel.
constexpr std::int64_t workspace_section(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

// Addresses of an op's tensors, in the op's order; `workspace` is scratch memory that belongs to the op only while it
// runs.
struct Binding {
  std::vector<Address> inputs;
  std::vector<Address> outputs;
  Address workspace;
};

// A backend's decisions for one op: layouts, workspace and implementation.
struct Lowering {
  std::vector<Layout> inputs;   // layouts that the kernel reads; core inserts reorders and compute copies if needed
  std::vector<Layout> outputs;  // layouts that the kernel writes
  std::int64_t workspace_bytes = 0;
  std::string implementation;  // "brgconv:avx512_core": for bench ops and the record of kernel choices
  std::function<std::unique_ptr<Kernel>(const Binding&)> bind;
};

// A map from the key of a computation (op, shapes, dtypes, hardware) to an implementation. Rank 0 fills it once, by
// timing, and all ranks use it.
class KernelChoices;  // core/backend/choices.h

// The measured peaks of a device, with which `bench ops` compares kernels.
struct Peaks {
  double float32_gflops = 0;   // matrix multiplication, or on the CPU multiply-adds in registers if those are faster
  double bfloat16_gflops = 0;  // the same with float32 accumulators
  double float32_product_gflops = 0;  // matrix multiplication alone
  double bfloat16_product_gflops = 0;
  double triad_gb_per_s = 0;  // a = b + s * c over arrays larger than the caches; the bytes of all three arrays count
};

// Work that was recorded once and is replayed as a whole on the same addresses, such as a CUDA graph.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void run(Stream& stream) = 0;
};

// Timestamps that a device writes into host memory when its stream reaches them.
class Marks {
 public:
  virtual ~Marks() = default;
  // Queues the writing of the mark's timestamp. Mark 0 begins a new round of marks.
  virtual void set(int mark, Stream& stream) = 0;
  // Queues a short delay, so that the work queued after it runs without waiting for the host.
  virtual void hold(Stream& stream) = 0;
  // The time at which the device last reached the mark, in seconds of the device's clock.
  virtual double seconds(int mark) const = 0;
  // The mark that the device reached last; -1 if it has reached no mark.
  virtual int last() const = 0;
};

// One copy of copy_all().
struct CopyRange {
  void* to = nullptr;
  const void* from = nullptr;
  std::int64_t bytes = 0;
};

// How a rank computes. A backend ignores the options that do not concern its device.
struct BackendOptions {
  int threads = 1;             // number of the rank's threads, which compute on the CPU or compile kernels for a GPU
  int local_rank = 0;          // index of the rank on its host, which selects one of the visible GPUs
  bool tf32 = false;           // compute float32 products and convolutions on tensor cores, with 10 bits of mantissa
  bool deterministic = false;  // produce the same bits on the same device in every run; false may be faster
  bool record = true;          // record work and replay it, if the device supports this
  bool timing = true;          // choose kernels by timing, else by the libraries' heuristics
  bool split_threads = false;  // on the CPU, compute one micro-batch per thread; threads do not share kernels
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;  // "cpu", "cuda": for messages
  // Whether the backend computes on the host's processors and in the host's memory, which all ranks of the host share.
  virtual bool on_host() const = 0;
  // The hardware and software that exact bits and kernel choices depend on: processor or GPU model, instruction set,
  // versions of libraries.
  virtual std::string fingerprint() const = 0;

  // Whether activations can have this dtype.
  virtual bool computes_in(DType dtype) const = 0;

  // Measures the device's peaks, in about a second.
  virtual Peaks peaks() = 0;

  // Allocates zeroed device memory. Throws Error{resource}, with the requested and the available bytes, if there is too
  // little.
  virtual Memory allocate(std::int64_t bytes) = 0;
  // The bytes that can still be allocated; 0 if the number is unknown.
  virtual std::int64_t free_memory() const = 0;
  // Allocates zeroed host memory from and to which the device copies asynchronously (page-locked on CUDA).
  virtual Memory allocate_host(std::int64_t bytes) = 0;
  // Copies between host and device memory, in the stream's order. Either side may be host memory.
  virtual void copy(void* to, const void* from, std::int64_t bytes, Stream& stream) = 0;
  // Copies `rows` rows of `width` bytes within the device's memory; the strides are the bytes from one row to the next.
  virtual void copy_rows(void* to, std::int64_t to_stride, const void* from, std::int64_t from_stride,
                         std::int64_t width, std::int64_t rows, Stream& stream) = 0;
  // Queues several copies as one piece of work. No copy may write to memory that another copy reads or writes, and host
  // memory must come from allocate_host().
  virtual void copy_all(std::span<const CopyRange> ranges, Stream& stream) = 0;

  virtual std::unique_ptr<Stream> compute_stream() = 0;  // on the CPU: runs work immediately, on the calling thread
  virtual std::unique_ptr<Stream> asynchronous_stream() = 0;  // on the CPU: runs work on a thread of its own
  virtual std::unique_ptr<Event> event() = 0;
  // The number of micro-batches that may be computed at the same time, each on its own stream.
  virtual int compute_streams() const = 0;
  // Whether queued work runs asynchronously to the host; the host then reads a step's result one step later.
  virtual bool asynchronous() const = 0;
  // Records the work that `queue` queues on the stream, and on streams that it joins by events, instead of running it.
  // Returns null if the device cannot record this work; the caller then queues it again for each run.
  virtual std::unique_ptr<Recording> record(Stream& stream, const std::function<void()>& queue) = 0;
  // Makes `count` marks. Returns null if work runs synchronously on the host.
  virtual std::unique_ptr<Marks> marks(int count) = 0;

  // Prepares the kernels that the choices name for a program's ops in parallel, if their preparation takes long. Called
  // before the ops are lowered; without this call lowering takes longer and has the same result.
  virtual void prepare(const Program& program, KernelChoices& choices) = 0;
  // Chooses an implementation for the op. `inputs` are the present layouts of its inputs (parameters: logical float32);
  // a lowering may ask for others. Deterministic, given the choices. Throws Error{config} with the op's location if the
  // device has no kernel for it.
  virtual Lowering lower(const Op& op, const Program& program, const std::vector<Layout>& inputs,
                         KernelChoices& choices) = 0;
  // Whether the backend's optimizers write the compute copies that its lowerings ask for (OptimizerUpdate::copies).
  virtual bool updates_copies() const = 0;
  // Whether the backend's convolutions can add the gradient with respect to the input to another gradient
  // (Conv2dGradInput::accumulate). Otherwise, core lowers the gradient and the sum as two ops.
  virtual bool adds_gradients() const = 0;
};

}  // namespace trainctl
