// The interface through which an op emits the ops of its gradients.
#pragma once

#include <memory>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// Through it an op's differentiate() reads the gradients of its outputs and emits those of its inputs.
class Differentiator {
 public:
  virtual ~Differentiator() = default;

  virtual const Tensor& tensor(TensorId id) const = 0;
  // The gradient of the loss by an output of the op, or no_tensor where the loss does not depend on that output.
  virtual TensorId gradient_of(TensorId output) const = 0;
  // Whether the gradient by this input is needed.
  virtual bool wants(TensorId input) const = 0;
  // Whether the op's gradients of parameters are added to what is there.
  virtual bool accumulate() const = 0;
  // The tensor that a trainable parameter's gradient is written to.
  virtual TensorId parameter_gradient(TensorId parameter) = 0;
  // Appends a backward op of `forward` whose outputs are new activations; returns the outputs.
  virtual std::vector<TensorId> emit(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                                     const Op& forward) = 0;
  // Appends a backward op of `forward` that writes the given tensors, a new activation in place of each no_tensor;
  // returns the outputs.
  virtual std::vector<TensorId> emit_into(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                                          std::vector<TensorId> outputs, const Op& forward) = 0;
  // Adds `gradient` to the gradient of the loss by `input`.
  virtual void contribute(TensorId input, TensorId gradient) = 0;
};

}  // namespace trainctl
