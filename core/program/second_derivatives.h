// Refuses expressions that have a gradient as a value, such as the gradient penalty of WGAN-GP.
#pragma once

#include <map>
#include <string>

#include "core/expression/syntax.h"
#include "core/graph/graph.h"

namespace trainctl {

// Throws ExpressionError if an expression calls gradient(y, x), as in TensorFlow and PyTorch. Its message has the names
// of the ops through which y depends on x, if both are names of `values`, which are tensors of the graph.
void refuse_gradients(const Expression& expression, const Graph& graph, const std::map<std::string, TensorId>& values);

}  // namespace trainctl
