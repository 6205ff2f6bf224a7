// What every op's lowering works with on CUDA: its context, the places of a run, and kernels made of functions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/choices.h"
#include "core/backend/cuda/runtime/device.h"
#include "core/backend/cuda/runtime/range.h"
#include "core/backend/cuda/runtime/streams.h"
#include "core/backend/op_context.h"
#include "core/base/error.h"

namespace trainctl::cuda {

class Plans;

struct LowerContext : OpContext {
  const Device& device;
  Plans& plans;

  // "conv2d 'conv1' (vgg.yaml:12:7)": for errors.
  std::string label() const;
};

// The tensors of one run, and the stream that it is queued on.
struct Places : OpPlaces {
  cudaStream_t stream;
};

// Queues a copy of an input to output 0, for an op that adds to it there; nothing where the op runs in place on it.
void copy_unless_in_place(const Places& places, std::size_t input, std::int64_t bytes);

// Queues body(places); an error names the op.
template <class Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Binding binding, Body body, std::string label)
      : binding_(std::move(binding)), body_(std::move(body)), label_(std::move(label)) {}

  void run(Stream& stream, const Slot& slot) override {
    const Range range(label_);
    try {
      body_(Places{{binding_, slot}, stream_of(stream)});
    } catch (const Error& error) {
      throw Error(error.kind(), label_ + ": " + error.what());
    }
  }

 private:
  Binding binding_;
  Body body_;
  std::string label_;
};

// A lowering to kernels of ours on logical layouts: make(const Binding&) gives what queues them, body(const Places&),
// for the places that the op is bound to. The caller may still change layouts, workspace and implementation.
template <class Make>
Lowering bound_kernel(const LowerContext& context, Make make) {
  Lowering lowering = context.logical();
  lowering.implementation = "own";
  lowering.bind = [make = std::move(make), label = context.label()](const Binding& b) -> std::unique_ptr<Kernel> {
    return std::make_unique<FunctionKernel<decltype(make(b))>>(b, make(b), label);
  };
  return lowering;
}

// The same where the body does not depend on the places.
template <class Body>
Lowering own_kernel(const LowerContext& context, Body body, std::int64_t workspace_bytes = 0) {
  Lowering lowering = bound_kernel(context, [body = std::move(body)](const Binding&) { return body; });
  lowering.workspace_bytes = workspace_bytes;
  return lowering;
}

using LowerFunction = Lowering (*)(const LowerContext&);

// The lowering of an op kind, or null.
LowerFunction find_lowering(std::string_view kind);
// The lowering of the context's op for inputs as they lie. Throws Error{config} where CUDA has no kernel for it.
Lowering lower_op(const LowerContext& context);

}  // namespace trainctl::cuda
