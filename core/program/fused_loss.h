// Fuses the last product of an output with its loss, so that the logits of all rows never exist at the same time.
#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/metrics/output.h"

namespace trainctl {

// Whether the op that computes the logits of an output [N, P..., K], and the output's loss, are to be one op
// (core/graph/ops/losses/linear_cross_entropy.h). This is so if the logits are the result of a dense layer without an
// activation, or of a reversed embedding; if those of a sample take at least 4 MiB, for at least 8192 classes of
// several positions; if the loss is sparse_categorical_crossentropy, in float32 or bfloat16; and if nothing else reads
// them: all metrics are accuracies or follow from the loss, and the rank has all classes. Perplexity and bits_per_byte
// read the logits if the loss has label smoothing.
bool fuses_loss(const Graph& graph, TensorId logits, const ResolvedOutput& output);

// Replaces the op that computes the logits by the fused op, which reads the targets and, in training, the weights, and
// computes the class sums. The class sums take the place of the logits in graph.outputs. Returns them.
TensorId fuse_loss(Graph& graph, TensorId logits, const ResolvedOutput& output, TensorId targets, TensorId weights);

// The ops of the forward pass of a training program: without those whose gradients compute their results.
std::vector<Op> without_fused_losses(const std::vector<Op>& ops);

}  // namespace trainctl
