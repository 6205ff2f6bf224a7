// The tools of all lowerings on the CPU: their context, the addresses of a run, and kernels made of functions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/choices.h"
#include "core/backend/cpu/simd/parallel.h"
#include "core/backend/cpu/simd/simd.h"
#include "core/backend/op_context.h"

namespace trainctl::cpu {

class OneDnn;  // core/backend/cpu/onednn/dnnl_kernel.h

struct LowerContext : OpContext {
  OneDnn& dnnl;
  int threads;
  bool timing;  // whether the backend chooses kernels by timing, else by rules alone

  // The key of the op's kernel choice: "conv2d 3x3 float32 64x32x32x16 ... threads=1".
  std::string key() const;
  // Whether a choice that is not recorded yet may be made by timing now.
  bool may_time(const std::string& key) const { return timing && choices.may_time(key); }
  // Handles a choice that was made by a rule: a backend that does not time kernels records it; a backend that times
  // kernels marks it as assumed, until the kernels are timed.
  void settle(const std::string& key, std::string_view implementation) const;
};

// The addresses of an op's tensors in one run.
using Buffers = OpBuffers;

// A kernel that runs as one task of the stream. On an asynchronous stream it may be queued again only after its
// previous run has ended.
class CpuKernel : public Kernel {
 public:
  void run(Stream& stream, const Slot& slot) final {
    slot_ = slot;
    stream.enqueue({[](void* kernel) {
                      auto* self = static_cast<CpuKernel*>(kernel);
                      self->compute(self->slot_);
                    },
                    this});
  }

 protected:
  virtual void compute(const Slot& slot) = 0;

 private:
  Slot slot_;
};

template <class Body>
class FunctionKernel final : public CpuKernel {
 public:
  FunctionKernel(Binding binding, Body body) : binding_(std::move(binding)), body_(std::move(body)) {}

 private:
  void compute(const Slot& slot) override { body_(Buffers{binding_, slot}); }

  Binding binding_;
  Body body_;
};

// A lowering to a kernel of this project that works on logical layouts: body(const Buffers&) runs the op.
template <class Body>
Lowering own_kernel(const LowerContext& context, Body body, std::int64_t workspace_bytes = 0) {
  Lowering lowering = context.logical();
  lowering.workspace_bytes = workspace_bytes;
  lowering.implementation = "own:" + std::string(name_of(instruction_set()));
  lowering.bind = [body = std::move(body)](const Binding& binding) -> std::unique_ptr<Kernel> {
    return std::make_unique<FunctionKernel<Body>>(binding, body);
  };
  return lowering;
}

// Calls make(T{}) with the C++ type of a floating-point dtype.
template <class Make>
Lowering with_type(DType dtype, const Make& make) {
  if (dtype == DType::float32) return make(float{});
  require(dtype == DType::bfloat16, "a CPU kernel was requested for a dtype other than float32 and bfloat16");
  return make(Bf16{});
}

// Lowers an op of one kind.
using LowerFunction = Lowering (*)(const LowerContext&);

// The lowering of an op kind, or null if the CPU has no kernel for it.
LowerFunction find_lowering(std::string_view kind);

}  // namespace trainctl::cpu
