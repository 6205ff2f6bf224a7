// Fusion: fewer, larger ops that compute the same.
//
// It works on graphs, not on finished programs: an op fused before differentiation has a gradient of its own, which
// agrees with the op by construction. It never crosses layers that exchange anything but their output, so that
// strategies which cut between layers, or split a layer's channels, find the same ops either way.
#pragma once

#include "core/graph/graph.h"

namespace trainctl {

// Fuses the forward graph, before differentiation. Where no other op reads the tensor between the two ops: - dense and
// conv2d, where `into_products` says so, add and add_bias take the activation behind them, if its gradient needs
//   the output alone;
// - batch normalisation takes an add behind it (the other summand becomes its residual) and a relu; with both it gets
//   the mask that its gradient reads as a further output;
// - batch normalisation with a relu, but without an add, takes the max pooling behind that.
// Tensors that are no longer written stay in the list.
//
// A library's matrix product with a fused relu may turn a NaN into 0. Training still finds the NaN, in the gradient of
// the weights; a program without gradients passes false for `into_products`, so that its loss shows the NaN.
Graph fuse(Graph graph, bool into_products = true);

// Fuses the backward ops. Where no other op reads the tensor between the two ops: - the gradient of an activation
// behind dense_grad_input becomes part of it; - dense_grad_input and conv2d_grad_input take the sum of their result
// with another gradient.
Backward fuse(Backward backward);

}  // namespace trainctl
