// Computes the backward pass of a graph by reverse-mode differentiation.
#pragma once

#include <map>
#include <vector>

#include "core/graph/graph.h"

namespace trainctl {

// The backward ops of a graph, in execution order, and the gradient of every trainable parameter.
struct Backward {
  std::vector<Op> ops;
  // The gradient of each trainable parameter: role gradient, float32, with the shape of the parameter.
  std::map<TensorId, TensorId> parameter_gradients;
};

// Differentiates a graph and appends the new tensors to it. `output_gradients` has an existing activation for each of
// graph.outputs: the gradient of the sum of the losses with respect to that output; no_tensor if the output belongs to
// another stage of a pipeline, or if an op of the graph computes its loss (OpDef::begins_gradient()). If several ops
// read a tensor, their gradients are summed by Add ops. Gradients that no trainable parameter needs are not computed
// (the gradients of the model's inputs, and gradients before the first trainable layer). With `accumulate`, ops add to
// the gradients of parameters instead of overwriting them. If several ops share a parameter, all but the last one of
// the forward pass always add.
Backward differentiate(Graph& graph, const std::vector<TensorId>& output_gradients, bool accumulate);

}  // namespace trainctl
