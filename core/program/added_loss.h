// Losses of values inside the network, which are added to the losses of its outputs.
#pragma once

#include "core/layers/model/model.h"
#include "core/program/network.h"

namespace trainctl {

// Appends the ops of the model's added losses to a network whose weights and sample numbers exist. The values of each
// loss, float32 [N], become an output of the graph, and the loss an output without targets of its own. `tensors`: those
// that each loss reads (BuiltModel::added_losses). `shares`: the samples of the replicas (Parallelism::shares); a loss
// over the whole batch has the values of all of them. Mistakes in expressions are reported to the reader.
void add_losses(Network& network, const ProgramSpec& spec, const std::vector<std::vector<TensorId>>& tensors,
                const SampleShares& shares, Reader& reader);

// Appends the op that computes the weights of an added loss, float32 [N] or, if the losses of the outputs are means of
// positions, [N, P...]: 1 for a sample or position that counts or, if losses are divided by the sum of the weights, its
// weight; otherwise 0. `mask` and `targets` are those that leave out positions (ResolvedOutput::masks()), or no_tensor.
// Returns the weights.
TensorId add_loss_weights(Graph& graph, const ResolvedOutput& output, TensorId mask, TensorId targets, bool by_weight);

}  // namespace trainctl
