// The head of one of the network's outputs: targets, metrics, loss and predictions, as tensors and ops.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/mesh.h"
#include "core/graph/ops/reshaping/columns.h"
#include "core/metrics/output.h"

namespace trainctl {

// Prediction programs have only the predictions; an output on another stage of the pipeline has only the sums.
struct OutputHead {
  ResolvedOutput output;
  TensorId logits = no_tensor;         // the graph's output, which the loss reads; the values of an added loss
  std::optional<ColumnRange> classes;  // range of the classes of this rank's logits, if there are class sums
  TensorId class_sums = no_tensor;     // sums over this rank's classes
  TensorId all_class_sums =
      no_tensor;  // the class sums of all ranks that hold different ranges of the classes, gathered
  TensorId plain_class_sums = no_tensor;  // the same for targets without label smoothing
  // Whether an op of the graph computes the class sums without writing the logits (fused_loss.h), and its gradient in
  // training. The sums of losses and metrics then follow that op.
  bool is_fused = false;
  // The values of a loss that is an expression (expression_values.h), which ops of the graph compute, and the same with
  // a last dimension of size 1, for the loss op; else no_tensor.
  TensorId values = no_tensor, value_rows = no_tensor;
  // The numbers of the ops of the graph that compute the values of an output's own loss: [first, end).
  std::size_t first_value_op = 0, end_of_value_ops = 0;
  // The weights of the values, in training. An added loss over the whole batch has values and weights for the samples
  // of all ranks, and rows for those of this rank.
  TensorId value_weights = no_tensor;
  std::vector<TensorId> metric_rows;  // for each metric: the same if it is an expression, else no_tensor
  TensorId whole_logits = no_tensor;  // the logits of all classes, gathered from the ranks; no_tensor if unused
  TensorId targets = no_tensor;       // role input
  TensorId steps = no_tensor;         // the padding mask, which the ops of a loss over sequences read
  // If losses and metrics leave out positions: the weights of all positions, and 1 for each position that counts, else
  // 0; both float32 [N, P...]. If the output counts itself and losses are divided by weights, both are the weights.
  TensorId weights = no_tensor;
  TensorId counted = no_tensor;
  // If the output counts itself: the sums of `counted` and of the weights, role reduced; in training also the factor of
  // the loss's gradient (position_counts.h).
  TensorId count = no_tensor, weight = no_tensor, factor = no_tensor;
  TensorId loss = no_tensor;      // float32 scalar, role reduced: the sum of the losses
  std::vector<TensorId> metrics;  // role reduced, in the order of the config; then the bytes of tokens, if they count,
                                  // and the cross-entropy without further terms, if it is needed
  // Gradient with respect to the logits or, if the loss is an expression, to `values`; in training, unless the loss is
  // fused.
  TensorId loss_gradient = no_tensor;
  // The loss's gradient before it is multiplied by `factor` or, in float16, by the loss scale, which results in
  // loss_gradient.
  TensorId unscaled_gradient = no_tensor;
  TensorId predictions = no_tensor;  // float32, softmax or sigmoid included; no_tensor if unused
  std::vector<Op> prediction_ops;    // compute whole_logits and predictions from the logits
  std::vector<Op> row_ops;           // compute all_class_sums from the logits, value_rows, and metric_rows
  std::vector<Op> weight_ops;        // compute `weights` and `counted`
  std::vector<Op> gradient_ops;      // multiply the loss's gradient by `factor`, if there is one
};

// The scalars and the weights that all output heads share.
struct SharedSums {
  TensorId weights = no_tensor;
  TensorId weight = no_tensor;      // the sum of the weights
  TensorId loss_scale = no_tensor;  // float16 only
};

// The tensors of the graph that belong to an output: its logits, its padding mask, and its targets if ops of the graph
// read them; else no_tensor.
struct OutputTensors {
  TensorId logits = no_tensor, mask = no_tensor, targets = no_tensor;
};

// Returns the head of an output for prediction, which has only predictions. Adds its tensors to the graph.
OutputHead prediction_head(ResolvedOutput output, TensorId logits, Graph& graph);
// Returns the head of an output without a loss: it has predictions in evaluation.
OutputHead head_without_loss(ResolvedOutput output, const OutputTensors& of, Graph& graph);
// Returns the head of an output for training or evaluation; without logits it has only the sums. `by_weight`:
// ProgramSpec::divides_by_weight(). Ranks along the tensor axis may hold different ranges of the classes
// (gather_outputs()).
OutputHead loss_head(ResolvedOutput output, const OutputTensors& of, bool by_weight, Graph& graph,
                     const MeshRank& rank);

// Gathers the outputs that are split along the tensor axis, except outputs with a loss that can be computed from ranges
// of the classes. With `predicts`, gathers all outputs that are split.
void gather_outputs(Graph& graph, const std::vector<ResolvedOutput>& outputs, const MeshRank& rank, bool predicts);

// The ops that turn a micro-batch's output into sums, and in training into the gradient of the loss; they run after
// prediction_ops and weight_ops. `counts`: whether this output's loss sums up the weights; only the loss of one output
// does so.
std::vector<Op> sum_ops(const OutputHead& head, const SharedSums& shared, bool counts, bool training, bool accumulate);

// The ops that set the sums of an output to zero, on the stages of a pipeline that do not hold the output; `counts` has
// the same meaning as in sum_ops().
std::vector<Op> zero_sums(const OutputHead& head, const SharedSums& shared, bool counts, const Graph& graph);

}  // namespace trainctl
