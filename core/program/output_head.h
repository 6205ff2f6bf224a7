// The end of a network at one of its outputs: targets, metrics, loss and predictions, as tensors and ops.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/mesh.h"
#include "core/graph/ops/reshaping/columns.h"
#include "core/metrics/output.h"

namespace trainctl {

// Of programs for prediction the predictions alone; of an output that another stage of the pipeline holds, the sums.
struct OutputHead {
  ResolvedOutput output;
  TensorId logits = no_tensor;         // the graph's output, which the loss takes
  std::optional<ColumnRange> classes;  // that this rank's logits are of, where ranks have parts of them
  TensorId class_sums = no_tensor;     // of these classes, and then those of all ranks
  TensorId all_class_sums = no_tensor;
  TensorId whole_logits = no_tensor;  // the logits, gathered where ranks have parts; no_tensor where nothing reads them
  TensorId targets = no_tensor;       // role input
  TensorId loss = no_tensor;          // float32 scalar, role reduced: a sum
  std::vector<TensorId> metrics;      // role reduced, as in the config
  TensorId loss_gradient = no_tensor;  // by the logits, in training
  // In float16: what the loss gives, before the loss scale multiplies it to loss_gradient.
  TensorId unscaled_gradient = no_tensor;
  TensorId predictions = no_tensor;  // float32, softmax or sigmoid included; no_tensor where nothing reads them
  std::vector<Op> prediction_ops;    // from the logits to whole ones and the predictions
  std::vector<Op> class_ops;         // from the logits to the class sums of all ranks
};

// The scalars and the weights that the ends of all outputs share.
struct SharedSums {
  TensorId weights = no_tensor;
  TensorId weight = no_tensor;      // their sum
  TensorId loss_scale = no_tensor;  // float16 only
};

// The end of an output of a network that predicts: predictions alone. The tensors are added to the graph.
OutputHead prediction_head(ResolvedOutput output, TensorId logits, Graph& graph);
// The end of an output of a network that trains or is evaluated; without `logits` the sums alone. Ranks along the
// tensor axis may have parts of the classes (gather_outputs()).
OutputHead loss_head(ResolvedOutput output, TensorId logits, Graph& graph, const MeshRank& rank);

// Gathers the outputs of which the ranks along the tensor axis have parts, but for those with a loss that can be
// computed from parts; of these, where `predicts` is true, there are none.
void gather_outputs(Graph& graph, const std::vector<ResolvedOutput>& outputs, const MeshRank& rank, bool predicts);

// The ops that turn a micro-batch's output into sums, and in training into the gradient of the loss; behind
// prediction_ops. `counts`: whether this output's loss sums up the weights, which one of all outputs' does.
std::vector<Op> sum_ops(const OutputHead& end, const SharedSums& shared, bool counts, bool training, bool accumulate);

// The ops that set the sums of an output to zero, on the stages of a pipeline that do not hold it; `counts` as above.
std::vector<Op> zero_sums(const OutputHead& end, const SharedSums& shared, bool counts, const Graph& graph);

}  // namespace trainctl
