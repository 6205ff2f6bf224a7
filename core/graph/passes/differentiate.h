// Reverse-mode differentiation of graphs.
#pragma once

#include <map>
#include <vector>

#include "core/graph/graph.h"

namespace trainctl {

// The backward ops of a graph, in execution order, and the gradient of every trainable parameter.
struct Backward {
  std::vector<Op> ops;
  // The gradient of each parameter: role gradient, float32, shaped like the parameter.
  std::map<TensorId, TensorId> parameter_gradients;
};

// Reverse-mode differentiation; appends the new tensors to the graph. `output_gradients` are existing activations: by
// graph.outputs, the gradients of the sum of losses; no_tensor where the output belongs to another stage of a pipeline,
// which sends the gradients of what it received. Add sums the gradients of a tensor with several readers. Gradients
// that no trainable parameter needs are not computed (those of the model's inputs, and before the first trainable
// layer). With `accumulate`, ops that produce parameter gradients add to the gradients that are there; of several ops
// that share a parameter all but the last one of the forward pass do in any case.
Backward differentiate(Graph& graph, const std::vector<TensorId>& output_gradients, bool accumulate);

}  // namespace trainctl
