// Fuses ops into fewer, larger ops that compute the same.
//
// Fusion works on graphs, not on finished programs: a forward op that is fused before differentiation has its own
// gradient, which agrees with the op by construction. Ops of different layers are fused only across the output of a
// layer, so that strategies which cut between layers, or split the channels of a layer, find the same ops. The op that
// writes the tensor decides which ops can be fused (OpDef::fused_with()).
#pragma once

#include "core/graph/passes/differentiate.h"

namespace trainctl {

// Fuses the forward graph, before differentiation. If no other op reads the tensor between the two ops:
// - dense, conv2d, add and add_bias are fused with the activation that follows, if can_be_fused() is true for it;
// - batch normalization is fused with an add that follows (the other summand becomes its residual) and with a relu;
//   with both, it has a further output, the mask that its gradient reads;
// - batch normalization with a relu, but without an add, is fused with the max pooling that follows;
// - a relu that conv2d, add or add_bias applies moves into the max pooling that follows.
// Tensors that are no longer written stay in the graph.
//
// If `may_hide_nan` is false, ops that may turn a NaN into a number (OpDef::may_hide_nan()) are not fused. Training
// finds a hidden NaN in the gradient of the weights; programs without gradients pass false, so that their loss shows
// the NaN.
Graph fuse(Graph graph, bool may_hide_nan = true);

// Fuses the backward ops. If no other op reads the tensor between the two ops:
// - dense_grad_input is fused with the gradient of the activation that computed the layer's input;
// - dense_grad_input and conv2d_grad_input are fused with the sum of their result and another gradient.
Backward fuse(Backward backward);

}  // namespace trainctl
