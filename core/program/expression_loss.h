// Losses that are expressions of the targets and the output of the network.
#pragma once

#include <map>
#include <string>

#include "core/graph/graph.h"
#include "core/metrics/output.h"
#include "core/spec/values.h"

namespace trainctl {

// What a loss expression is computed from. All tensors are [N, ...].
struct LossSources {
  std::string name;                              // of the ops
  const Located<std::string>& text;              // the expression
  std::map<std::string, TensorId> values;        // by their names in the expression; gradients flow back to them
  std::map<std::string, TensorId> targets = {};  // float32
  std::map<std::string, double> constants = {};
  TensorId weights = no_tensor;  // float32 [N] or, if positions have weights, [N, P...]
  double scale = 1;              // factor of the result
};

// Appends the ops of a loss expression to a graph. Returns `scale` times the mean of the values of each sample or, if
// positions have weights, of each position: float32 of the shape of the weights. Values and gradients of weight 0 are
// 0, also where the expression is not finite. Throws ExpressionError.
TensorId add_loss_values(Graph& graph, const LossSources& sources);

// Appends the ops of an output's loss expression to a graph, which computes the values of the loss from the output
// `predictions` [N, P..., K], the targets (float32, of the same shape) and the weights, float32 [N] or [N, P...].
// Returns the values, float32 of the shape of the weights: one
// for each position if it has its own weight, otherwise one for each sample, multiplied by the number of positions,
// because the losses of all outputs are divided by numbers of positions. Values and gradients of weight 0 are 0, also
// where the expression is not finite. Throws ExpressionError.
TensorId add_loss_values(Graph& graph, const ResolvedOutput& output, TensorId predictions, TensorId targets,
                         TensorId weights);

// Returns the mistake in the loss expression of an output for a graph, or "".
std::string mistake_in_loss(Graph graph, const ResolvedOutput& output, TensorId predictions);

}  // namespace trainctl
