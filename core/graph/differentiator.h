// The interface by which an op emits the ops that compute its gradients.
#pragma once

#include <memory>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// Passed to OpDef::differentiate(), which reads the gradients of the op's outputs and emits ops for the gradients of
// its inputs.
class Differentiator {
 public:
  virtual ~Differentiator() = default;

  virtual const Tensor& tensor(TensorId id) const = 0;
  // The gradient of the loss with respect to an output of the op; no_tensor if the loss does not depend on the output.
  virtual TensorId gradient_of(TensorId output) const = 0;
  // Whether the gradient with respect to this input is needed.
  virtual bool needs_gradient(TensorId input) const = 0;
  // Whether the op must add its gradients of parameters to the values of the gradient tensors instead of overwriting
  // them.
  virtual bool accumulate() const = 0;
  // The tensor for the gradient of a trainable parameter or, for an alias of a parameter, for the gradient of the
  // alias.
  virtual TensorId parameter_gradient(TensorId parameter) = 0;
  // Appends a backward op of `forward` with new activations as its outputs; returns the outputs.
  virtual std::vector<TensorId> emit(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                                     const Op& forward) = 0;
  // Appends a backward op of `forward` that writes the tensors `outputs`, with a new activation for each no_tensor;
  // returns the outputs.
  virtual std::vector<TensorId> emit_into(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs,
                                          std::vector<TensorId> outputs, const Op& forward) = 0;
  // Adds `gradient` to the gradient of the loss with respect to `input`.
  virtual void contribute(TensorId input, TensorId gradient) = 0;
};

}  // namespace trainctl
