// Backend: everything a device must be able to do. With kernel.h and communicator.h the whole porting surface.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend/kernel.h"
#include "core/backend/memory.h"
#include "core/backend/stream.h"
#include "core/program/program.h"
#include "core/tensor/layout.h"

namespace trainctl {

// The logical layout of a type.
inline Layout logical_layout(const TensorType& type) { return {type.dtype, "", type.bytes()}; }

// The bytes of a part of a workspace, rounded up so that the next part is aligned for every kernel.
constexpr std::int64_t workspace_part(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

// Places of an op's tensors, in the op's order; `workspace` is scratch memory alive only during the op.
struct Binding {
  std::vector<Address> inputs;
  std::vector<Address> outputs;
  Address workspace;
};

// What a backend decided for one op.
struct Lowering {
  std::vector<Layout> inputs;   // what the kernel reads; core inserts reorders and compute copies where they differ
  std::vector<Layout> outputs;  // what it writes
  std::int64_t workspace_bytes = 0;
  std::string implementation;  // "brgconv:avx512_core": for bench ops and the record of kernel choices
  std::function<std::unique_ptr<Kernel>(const Binding&)> bind;
};

// Choices made once by timing, by rank 0, and used by all ranks: key (op, shapes, dtypes, hardware) -> implementation.
class KernelChoices;  // core/backend/choices.h

// What a device can do at most, measured: the yardstick of `bench ops`.
struct Peaks {
  double float32_gflops = 0;   // matrix multiplication
  double bfloat16_gflops = 0;  // likewise, into float32 accumulators
  double triad_gb_per_s = 0;   // a = b + s * c over arrays larger than the caches, the three of them counted
};

// Work that was queued once and is run again as a whole, on the same places: a CUDA graph.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void run(Stream& stream) = 0;
};

// Marks that a device sets in the host's memory as it comes to them, with its time.
class Marks {
 public:
  virtual ~Marks() = default;
  // Queues the setting of a mark. Mark 0 begins a new round.
  virtual void set(int mark, Stream& stream) = 0;
  // Queues some time in which nothing happens, so that what is queued next runs without waiting for the host.
  virtual void hold(Stream& stream) = 0;
  // When the device came to it last, in seconds of its clock.
  virtual double seconds(int mark) const = 0;
  // The last one that it came to; -1 for none.
  virtual int last() const = 0;
};

// One of several copies.
struct CopyPart {
  void* to = nullptr;
  const void* from = nullptr;
  std::int64_t bytes = 0;
};

// How a rank computes. A backend ignores the options that do not concern its device.
struct BackendOptions {
  int threads = 1;             // of a rank: that compute on the CPU, that compile kernels for a GPU
  int local_rank = 0;          // which of the host's GPUs: this one, of those that are visible
  bool tf32 = false;           // float32 products and convolutions on tensor cores, with 10 bits of mantissa
  bool deterministic = false;  // the same bits on the same device; false may be faster
  bool record = true;          // whether work is recorded and replayed, where the device can
  bool timing = true;          // kernels are chosen by timing; else as the libraries' heuristics say
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;  // "cpu", "cuda": for messages
  // Whether it computes on the host's processors, in the host's memory, which the ranks of a host share.
  virtual bool on_host() const = 0;
  // What the exact bits and kernel choices depend on: processor or GPU model, instruction set, library versions.
  virtual std::string fingerprint() const = 0;

  // Whether activations can be of this dtype.
  virtual bool computes_in(DType dtype) const = 0;

  // Takes about a second.
  virtual Peaks peaks() = 0;

  // Zeroed. Throws Error{resource} that says how much was asked for and how much there is.
  virtual Memory allocate(std::int64_t bytes) = 0;
  // Bytes that can still be allocated; 0 where that cannot be found out.
  virtual std::int64_t free_memory() const = 0;
  // Host memory that copies to and from the device pass through without waiting (page-locked on CUDA). Zeroed.
  virtual Memory allocate_host(std::int64_t bytes) = 0;
  // Copies between host and device memory, in the stream's order. Either side may be host memory.
  virtual void copy(void* to, const void* from, std::int64_t bytes, Stream& stream) = 0;
  // The same for parts of which none writes where another one reads or writes, as one piece of work. Host memory is
  // that of allocate_host().
  virtual void copy_all(std::span<const CopyPart> parts, Stream& stream) = 0;

  virtual std::unique_ptr<Stream> compute_stream() = 0;       // on the CPU: runs at once on the calling thread
  virtual std::unique_ptr<Stream> asynchronous_stream() = 0;  // on the CPU: a thread of its own
  virtual std::unique_ptr<Event> event() = 0;
  // Whether queued work runs beside the host: a step's result is then read a step later.
  virtual bool asynchronous() const = 0;
  // Records what `queue` queues on the stream, and on others that it joins by events, instead of running it. Null where
  // the device has nothing of the kind or cannot record this: queue again for each run.
  virtual std::unique_ptr<Recording> record(Stream& stream, const std::function<void()>& queue) = 0;
  // Null where work runs in the host's own time.
  virtual std::unique_ptr<Marks> marks(int count) = 0;

  // Makes what the choices name for a program's ops, where that takes long and can be done side by side. To be called
  // before they are lowered; nothing but time depends on it.
  virtual void prepare(const Program& program, KernelChoices& choices) = 0;
  // Chooses an implementation for the op. `inputs` are the layouts in which its inputs lie (parameters: logical
  // float32); a lowering may ask for others. Deterministic, given the choices. Throws Error{config} with the op's place
  // where the device has no kernel for it.
  virtual Lowering lower(const Op& op, const Program& program, const std::vector<Layout>& inputs,
                         KernelChoices& choices) = 0;
  // Whether its optimizers write the compute copies that its lowerings ask for (OptimizerUpdate::copies).
  virtual bool updates_copies() const = 0;
  // Whether its convolutions' gradients by the input add to another one (Conv2dGradInput::accumulate). Where not, core
  // lowers the gradient and the sum as two ops.
  virtual bool adds_gradients() const = 0;
};

}  // namespace trainctl
