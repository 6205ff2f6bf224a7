// Fusion: fewer, larger ops that compute the same.
//
// It works on graphs, not on finished programs: an op fused before differentiation has a gradient of its own, which
// agrees with the op by construction. It never crosses layers that exchange anything but their output, so that
// strategies which cut between layers, or split a layer's channels, find the same ops either way. Which ops can be
// fused is said by the op that is read (OpDef::fused_with()).
#pragma once

#include "core/graph/passes/differentiate.h"

namespace trainctl {

// Fuses the forward graph, before differentiation. If no other op reads the tensor between the two ops:
// - dense, conv2d, add and add_bias are fused with the activation that follows, if its gradient needs the output alone;
// - batch normalisation is fused with an add that follows (the other summand becomes its residual) and with a relu;
//   with both it gets the mask that its gradient reads as a further output;
// - batch normalisation with a relu, but without an add, is fused with the max pooling that follows.
// Tensors that are no longer written stay in the list.
//
// Without `may_hide_nan` no op is made that may turn a NaN into a number (OpDef::may_hide_nan()). Training still finds
// the NaN, in the gradient of the weights; a program without gradients passes false, so that its loss shows the NaN.
Graph fuse(Graph graph, bool may_hide_nan = true);

// Fuses the backward ops. If no other op reads the tensor between the two ops:
// - dense_grad_input is fused with the gradient of the activation that made the layer's input;
// - dense_grad_input and conv2d_grad_input are fused with the sum of their result and another gradient.
Backward fuse(Backward backward);

}  // namespace trainctl
