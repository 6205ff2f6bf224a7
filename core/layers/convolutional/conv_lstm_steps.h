// The steps of a convolutional LSTM: how they are taken from a sequence, and the ops that compute one from the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/op.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "core/layers/layer.h"
#include "core/spec/choice.h"

namespace trainctl {

// Returns the values of x with another shape of as many elements.
TensorId with_shape(Layer& layer, TensorId x, Shape shape);

// Drops values of x by a share of `rate`; `purpose` distinguishes the layer's random numbers.
TensorId dropped(Layer& layer, TensorId x, double rate, const std::string& purpose, DropoutUnit unit);

// Returns the steps of x [N, T, C], each [N, 1, C].
std::vector<TensorId> steps_of(Layer& layer, TensorId x);

// Returns for each step the numbers [N, 1...], with `rank` dimensions, that tell whether the padding mask shows it in a
// sample; empty without a mask.
std::vector<TensorId> steps_of_mask(Layer& layer, const Feature& input, std::int64_t rank);

// The hidden and the cell state, each [N, P..., filters] for positions P; no_tensor: 0.
struct ConvLstmStates {
  TensorId h = no_tensor;
  TensorId c = no_tensor;
};

struct ConvLstmCell {
  Layer& layer;
  std::int64_t filters = 0;
  const Choice& activation;            // of candidates and outputs
  const Choice& recurrent_activation;  // of the gates
  std::shared_ptr<const OpDef> convolution;
  TensorId kernel = no_tensor;  // of the convolution of the hidden state
  double recurrent_dropout = 0;

  // Computes all steps in their order and returns their outputs [N, P..., filters]. `steps`: the convolved inputs, to
  // which the shape `of_step` [N, P..., 4 filters] is given; `shown`: see steps_of_mask(). `states`: the states before
  // the first step, then those after the last one.
  std::vector<TensorId> run(const std::vector<TensorId>& steps, const std::vector<TensorId>& shown,
                            const Shape& of_step, ConvLstmStates& states) const;

 private:
  ConvLstmStates next(TensorId x, const ConvLstmStates& before) const;
  TensorId from_state(TensorId h) const;
};

}  // namespace trainctl
