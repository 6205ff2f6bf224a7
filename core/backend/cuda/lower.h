// What every op's lowering works with on CUDA: its context, the places of a run, and kernels made of functions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/choices.h"
#include "core/backend/cuda/device.h"
#include "core/backend/cuda/streams.h"
#include "core/backend/op_context.h"
#include "core/base/error.h"

namespace trainctl::cuda {

struct LowerContext : OpContext {
  const Device& device;

  // "conv2d 'conv1' (vgg.yaml:12:7)": for errors.
  std::string label() const;
};

// The tensors of one run, and the stream that it is queued on.
struct Places : OpPlaces {
  cudaStream_t stream;
};

// Queues body(places); an error names the op.
template <class Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Binding binding, Body body, std::string label)
      : binding_(std::move(binding)), body_(std::move(body)), label_(std::move(label)) {}

  void run(Stream& stream, const Slot& slot) override {
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

// A lowering to kernels on logical layouts: body(const Places&) queues them. The caller may still change layouts,
// workspace and implementation.
template <class Body>
Lowering kernel(const LowerContext& context, std::string implementation, Body body, std::int64_t workspace_bytes = 0) {
  Lowering lowering = context.logical();
  lowering.workspace_bytes = workspace_bytes;
  lowering.implementation = std::move(implementation);
  lowering.bind = [body = std::move(body), label = context.label()](const Binding& b) -> std::unique_ptr<Kernel> {
    return std::make_unique<FunctionKernel<Body>>(b, body, label);
  };
  return lowering;
}

template <class Body>
Lowering own_kernel(const LowerContext& context, Body body, std::int64_t workspace_bytes = 0) {
  return kernel(context, "own", std::move(body), workspace_bytes);
}

using LowerFunction = Lowering (*)(const LowerContext&);

// The lowering of an op kind, or null.
LowerFunction find_lowering(std::string_view kind);

}  // namespace trainctl::cuda
