// lstm, gru and simple_rnn: kernel (in, gates * units), recurrent_kernel (units, gates * units), bias (gates * units),
// and gru's recurrent_bias. The gates are in Keras' order.
#include "core/graph/ops/recurrent.h"

#include <tuple>
#include <type_traits>

#include "core/base/format.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/masks.h"
#include "core/layers/activations.h"
#include "core/layers/images.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/regularizers.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct RecurrentOptions : ChainedLayer {
  std::int64_t units = 0;
  ActivationChoice activation{"tanh"};
  ActivationChoice recurrent_activation{"sigmoid"};
  bool use_bias = true;
  InitializerChoice kernel_initializer{"glorot_uniform"};
  InitializerChoice recurrent_initializer{"orthogonal"};
  InitializerChoice bias_initializer{"zeros"};
  RegularizerChoice kernel_regularizer, recurrent_regularizer, bias_regularizer;
  bool return_sequences = false;
  bool go_backwards = false;
  bool reverse_output = false;
  bool zero_output_for_mask = false;

  MaskUse mask_use() const final { return return_sequences ? MaskUse::own : MaskUse::ends; }

 protected:
  TensorId bias(Layer& layer, const std::string& name, std::int64_t values, std::int64_t ones_begin,
                std::int64_t ones_end) const {
    Initializer initializer = make_initializer(bias_initializer, {values});
    initializer.ones_begin = ones_begin;
    initializer.ones_end = ones_end;
    return layer.parameter(name, {values}, initializer, false, penalty_of(bias_regularizer));
  }

  // Expands the layer. The initial value of the elements [ones_begin, ones_end) of its bias is 1.
  Feature expand(Layer& layer, const Feature& input, RecurrentCell cell, std::int64_t ones_begin = 0,
                 std::int64_t ones_end = 0) const {
    if (!is_sequence(layer, input)) return {};
    for (const auto& [key, chosen, supported] :
         {std::tuple{"activation", &activation, "tanh"}, {"recurrent_activation", &recurrent_activation, "sigmoid"}}) {
      if (chosen->name != supported)
        return layer.error(format("{} {} is not supported: use {}", key, chosen->name, supported), input);
    }
    const bool gru = cell == RecurrentCell::gru;
    const int gates = with_cell(cell, [](auto arithmetic) { return decltype(arithmetic)::gates; });
    const std::int64_t columns = checked_multiply(units, gates);
    const Shape kernel{layer.shape(input).back(), columns}, recurrent{units, columns};
    std::vector<TensorId> dense_operands{input.tensor}, operands{no_tensor};
    dense_operands.push_back(layer.parameter("kernel", kernel, make_initializer(kernel_initializer, kernel), true,
                                             penalty_of(kernel_regularizer)));
    operands.push_back(layer.parameter("recurrent_kernel", recurrent,
                                       make_initializer(recurrent_initializer, recurrent), true,
                                       penalty_of(recurrent_regularizer)));
    if (use_bias) {
      dense_operands.push_back(bias(layer, "bias", columns, ones_begin, ones_end));
      if (gru) operands.push_back(bias(layer, "recurrent_bias", columns, 0, 0));
    }
    if (zero_output_for_mask && input.masked() && return_sequences && go_backwards != reverse_output) {
      return layer.error(
          "the outputs at masked steps cannot be zeros where the steps of the output are in the reverse order: set "
          "reverse_output like go_backwards",
          input);
    }
    operands[0] = layer.op(std::make_shared<Dense>(), dense_operands)[0];
    if (input.masked()) operands.push_back(input.mask);
    std::vector<std::string> further;
    if (layer.training()) further = {"gates", "memories", "states"};
    const RecurrentAttributes attributes{cell, return_sequences, go_backwards, return_sequences && reverse_output,
                                         input.masked()};
    const auto op = std::make_shared<Recurrent>(attributes, layer.training());
    TensorId y = layer.op(op, operands, further)[0];
    if (zero_output_for_mask && input.masked() && return_sequences) {
      y = layer.op(std::make_shared<MaskPositions>(), {y, input.mask})[0];
    }
    return layer.output(y, input.mask);
  }
};

struct LstmOptions final : RecurrentOptions {
  bool unit_forget_bias = true;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return RecurrentOptions::expand(layer, inputs[0], RecurrentCell::lstm, unit_forget_bias ? units : 0,
                                    unit_forget_bias ? checked_multiply(units, 2) : 0);
  }
};

struct GruOptions final : RecurrentOptions {
  bool reset_after = true;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!reset_after) return layer.error("reset_after false is not supported: use true, Keras' default", inputs[0]);
    return RecurrentOptions::expand(layer, inputs[0], RecurrentCell::gru);
  }
};

struct SimpleRnnOptions final : RecurrentOptions {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return RecurrentOptions::expand(layer, inputs[0], RecurrentCell::simple);
  }
};

template <class O>
Keys<O> recurrent_keys(std::string kind, std::string meaning) {
  constexpr bool gated = !std::is_same_v<O, SimpleRnnOptions>;
  Keys<O> keys = layer_keys<O>(std::move(kind), std::move(meaning))
                     .required("units", &O::units, "Number of outputs and of states.", between(1, max_channels))
                     .key("activation", &O::activation,
                          gated ? "Activation of candidates and outputs; only tanh is supported."
                                : "Activation of outputs; only tanh is supported.");
  if constexpr (gated) {
    std::move(keys).key("recurrent_activation", &O::recurrent_activation,
                        "Activation of the gates; only sigmoid is supported.");
  }
  return std::move(keys)
      .key("use_bias", &O::use_bias, "Whether biases are added.")
      .key("kernel_initializer", &O::kernel_initializer, "Initial values of the kernel.")
      .key("recurrent_initializer", &O::recurrent_initializer, "Initial values of the recurrent kernel.")
      .key("bias_initializer", &O::bias_initializer, "Initial values of biases.")
      .key("kernel_regularizer", &O::kernel_regularizer, "A penalty on the kernel.")
      .key("recurrent_regularizer", &O::recurrent_regularizer, "A penalty on the recurrent kernel.")
      .key("bias_regularizer", &O::bias_regularizer, "A penalty on biases.")
      .key("return_sequences", &O::return_sequences, "Whether the output has all steps instead of only the last one.")
      .key("go_backwards", &O::go_backwards,
           "Whether steps are processed from the last to the first; an output of all steps has them in that order.")
      .key("reverse_output", &O::reverse_output,
           "Whether an output of all steps has them in the reverse of the order in which they are processed. With "
           "go_backwards that is the order of the input, as in the backward layer of Keras' Bidirectional.")
      .key("zero_output_for_mask", &O::zero_output_for_mask,
           "Whether an output of all steps is 0 at the steps that the padding mask of the input hides; otherwise it is "
           "that of the step before.")
      .shorthand("units");
}

}  // namespace

Section lstm() {
  using O = LstmOptions;
  return recurrent_keys<O>("lstm",
                           "Long short-term memory over sequences (steps, features), with all states 0 at first; "
                           "Hochreiter and Schmidhuber (1997).")
      .key("unit_forget_bias", &O::unit_forget_bias, "Whether the initial bias of the forget gate is 1.");
}

Section gru() {
  using O = GruOptions;
  return recurrent_keys<O>("gru",
                           "Gated recurrent units over sequences (steps, features), with all states 0 at first; Cho et "
                           "al. (2014). The two rows of Keras' bias are two parameters, bias and recurrent_bias.")
      .key("reset_after", &O::reset_after,
           "Whether the reset gate is applied after the product with the recurrent kernel; only true is supported.");
}

Section simple_rnn() {
  return recurrent_keys<SimpleRnnOptions>(
      "simple_rnn",
      "A fully connected recurrent layer over sequences (steps, features), with all states 0 at first; Elman (1990).");
}

}  // namespace trainctl
