// The values of losses and metrics that are expressions of the targets and the output of the network.
#pragma once

#include <map>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/ops/whole_batch.h"
#include "core/metrics/output.h"
#include "core/spec/values.h"

namespace trainctl {

// What an expression of tensors [N, ...] is computed from.
struct ExpressionSources {
  std::string name;                              // of the ops
  const Located<std::string>& text;              // the expression
  std::map<std::string, TensorId> values;        // by their names in the expression; gradients flow back to them
  std::map<std::string, TensorId> targets = {};  // float32
  std::map<std::string, double> constants = {};
  TensorId weights = no_tensor;          // float32 [N] or, if positions have weights, [N, P...]
  double scale = 1;                      // factor of the result
  const SampleShares* shares = nullptr;  // set: the expression reads the samples of all ranks
};

// Appends the ops of an expression to a graph. Returns `scale` times the mean of the values of each sample or, if
// positions have weights, of each position: float32 of the shape of the weights. Values and gradients of weight 0 are
// 0, also where the expression is not finite. With `shares`, the expression has values for each sample of all ranks, or
// one value for all of them; the result is [samples of all ranks], and samples of weight 0 are among those with which
// others are compared. Throws ExpressionError.
TensorId add_values(Graph& graph, const ExpressionSources& sources);

// Appends the op that gathers the samples of all ranks, unless there is one rank.
TensorId gathered(Graph& graph, TensorId samples, const SampleShares& shares, const std::string& name);

// What the expression of an output reads: the output [N, P..., K]; the targets, float32 of the same shape or class
// numbers int32 [N, P...]; the weights, float32 [N] or [N, P...].
struct ExpressionInputs {
  TensorId predictions = no_tensor, targets = no_tensor, weights = no_tensor;
};

// Appends the ops of an output's expression to a graph, under a name. Returns the values of add_values() above: one for
// each position if it has its own weight, otherwise one for each sample, multiplied by the number of positions, because
// losses and metrics are divided by numbers of positions. Throws ExpressionError.
TensorId add_values(Graph& graph, const OutputExpression& expression, const std::string& name,
                    const ExpressionInputs& inputs);

// Returns the values of add_values(), with a last dimension of size 1, for the ops of losses and metrics, which read
// rows. Adds the op to `ops` and the tensor to the graph.
TensorId add_rows(Graph& graph, TensorId values, const std::string& name, std::vector<Op>& ops);

// Returns the mistake in an expression of an output, or "". `predictions` is the output's tensor in the graph.
std::string mistake_in(const OutputExpression& expression, Graph graph, const ResolvedOutput& output,
                       TensorId predictions);

}  // namespace trainctl
