// Types and functions that the lowerings of all ops on CUDA use: the context of a lowering, the addresses of a run, and
// kernels made from functions.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/choices.h"
#include "core/backend/cuda/runtime/device.h"
#include "core/backend/cuda/runtime/streams.h"
#include "core/backend/op_context.h"
#include "core/base/error.h"

namespace trainctl::cuda {

class Plans;

struct LowerContext : OpContext {
  const Device& device;
  Plans& plans;

  // The op's name in errors and logs: "conv2d 'conv1' (vgg.yaml:12:7)".
  std::string label() const;
};

// The addresses of an op's tensors in one run, and the stream on which the op is queued.
struct Buffers : OpBuffers {
  cudaStream_t stream;
};

// Queues a copy of an input to output 0, to which the op then adds. Queues no copy if the op runs in place, that is, if
// the input and the output have the same address.
void copy_unless_in_place(const Buffers& buffers, std::size_t input, std::int64_t bytes);

// A range that Nsight Systems and Nsight Compute show around the work that the host queues. Without a profiler it has
// no effect.
class Range {
 public:
  explicit Range(const std::string& name) { nvtxRangePushA(name.c_str()); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

// A kernel that queues its work by body(buffers); an Error that the body throws gets the op's label.
template <class Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Binding binding, Body body, std::string label)
      : binding_(std::move(binding)), body_(std::move(body)), label_(std::move(label)) {}

  void run(Stream& stream, const Slot& slot) override {
    const Range range(label_);
    try {
      body_(Buffers{{binding_, slot}, stream_of(stream)});
    } catch (const Error& error) {
      throw Error(error.kind(), label_ + ": " + error.what());
    }
  }

 private:
  Binding binding_;
  Body body_;
  std::string label_;
};

// A lowering to this project's kernels on logical layouts. make(const Binding&) returns, for the bound addresses, the
// function body(const Buffers&) that queues the kernels. The caller may still change layouts, workspace and
// implementation.
template <class Make>
Lowering bound_kernel(const LowerContext& context, Make make) {
  Lowering lowering = context.logical();
  lowering.implementation = "own";
  lowering.bind = [make = std::move(make), label = context.label()](const Binding& b) -> std::unique_ptr<Kernel> {
    return std::make_unique<FunctionKernel<decltype(make(b))>>(b, make(b), label);
  };
  return lowering;
}

// A bound_kernel() with a body that does not depend on the bound addresses.
template <class Body>
Lowering own_kernel(const LowerContext& context, Body body, std::int64_t workspace_bytes = 0) {
  Lowering lowering = bound_kernel(context, [body = std::move(body)](const Binding&) { return body; });
  lowering.workspace_bytes = workspace_bytes;
  return lowering;
}

// Lowers an op of one kind.
using LowerFunction = Lowering (*)(const LowerContext&);

// The function that lowers ops of this kind; null if CUDA has no kernel for the kind.
LowerFunction find_lowering(std::string_view kind);
// Lowers the context's op for its inputs' layouts. Throws Error{config} if CUDA has no kernel for the op.
Lowering lower_op(const LowerContext& context);

}  // namespace trainctl::cuda
