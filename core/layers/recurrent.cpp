// lstm, gru and simple_rnn: kernel (in, gates * units), recurrent_kernel (units, gates * units), bias (gates * units),
// and gru's recurrent_bias. The gates are in Keras' order.
#include "core/graph/ops/recurrent.h"

#include <tuple>
#include <type_traits>

#include "core/base/format.h"
#include "core/base/random.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "core/graph/ops/masks.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/activations.h"
#include "core/layers/broadcast.h"
#include "core/layers/images.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/recurrent_states.h"
#include "core/layers/regularizers.h"
#include "core/layers/table.h"
#include "core/spec/one_or_more.h"

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
  bool return_state = false;
  OneOrMore<Reference> initial_state;
  double dropout = 0;
  double recurrent_dropout = 0;
  bool go_backwards = false;
  bool reverse_output = false;
  bool zero_output_for_mask = false;

  MaskUse mask_use() const final { return return_sequences ? MaskUse::own : MaskUse::ends; }
  bool numbers_samples() const final { return dropout != 0 || recurrent_dropout != 0; }
  std::vector<Reference> references() const final {
    if (initial_state.empty()) return ChainedLayer::references();
    std::vector<Reference> all = initial_state.items;
    all.insert(all.begin(), from);
    return all;
  }

 protected:
  TensorId bias(Layer& layer, const std::string& name, std::int64_t values, std::int64_t ones_begin,
                std::int64_t ones_end) const {
    Initializer initializer = make_initializer(bias_initializer, {values});
    initializer.ones_begin = ones_begin;
    initializer.ones_end = ones_end;
    return layer.parameter(name, {values}, initializer, false, penalty_of(bias_regularizer));
  }

  // Expands the layer. The initial value of the elements [ones_begin, ones_end) of its bias is 1.
  Feature expand(Layer& layer, const std::vector<Feature>& inputs, RecurrentCell cell, std::int64_t ones_begin = 0,
                 std::int64_t ones_end = 0) const {
    const Feature& input = inputs[0];
    if (!is_supported(layer, input)) return {};
    std::vector<TensorId> begin;  // the states before the first step
    if (!initial_state.empty()) {
      const auto given = initial_states(layer, inputs, cell == RecurrentCell::lstm ? 2 : 1, {units});
      if (!given) return {};
      begin = *given;
    }
    const bool gru = cell == RecurrentCell::gru;
    const int gates = with_cell(cell, [](auto arithmetic) { return decltype(arithmetic)::gates; });
    const std::int64_t columns = checked_multiply(units, gates);
    const Shape kernel{layer.shape(input).back(), columns}, recurrent{units, columns};
    std::vector<TensorId> dense_operands{dropped(layer, input.tensor)}, operands{no_tensor};
    dense_operands.push_back(layer.parameter("kernel", kernel, make_initializer(kernel_initializer, kernel), true,
                                             penalty_of(kernel_regularizer)));
    operands.push_back(layer.parameter("recurrent_kernel", recurrent,
                                       make_initializer(recurrent_initializer, recurrent), true,
                                       penalty_of(recurrent_regularizer)));
    if (use_bias) {
      dense_operands.push_back(bias(layer, "bias", columns, ones_begin, ones_end));
      if (gru) operands.push_back(bias(layer, "recurrent_bias", columns, 0, 0));
    }
    operands[0] = layer.op(std::make_shared<Dense>(), dense_operands)[0];
    operands.insert(operands.end(), begin.begin(), begin.end());
    return steps(layer, input, cell, std::move(operands));
  }

 private:
  // Reports options that the op does not compute.
  bool is_supported(Layer& layer, const Feature& input) const {
    if (!is_sequence(layer, input)) return false;
    for (const auto& [key, chosen, supported] :
         {std::tuple{"activation", &activation, "tanh"}, {"recurrent_activation", &recurrent_activation, "sigmoid"}}) {
      if (chosen->name == supported) continue;
      layer.error(format("{} {} is not supported: use {}", key, chosen->name, supported), input);
      return false;
    }
    if (zero_output_for_mask && input.masked() && return_sequences && go_backwards != reverse_output) {
      layer.error(
          "the outputs at masked steps cannot be zeros where the steps of the output are in the reverse order: set "
          "reverse_output like go_backwards",
          input);
      return false;
    }
    return true;
  }

  // The input of the product with the kernel: in training with the same features of all steps of a sample dropped.
  TensorId dropped(Layer& layer, TensorId x) const {
    if (!layer.training() || dropout == 0) return x;
    std::vector<TensorId> operands = layer.dropout_inputs();
    operands.insert(operands.begin(), x);
    return layer.op(std::make_shared<Dropout>(static_cast<float>(dropout), layer.seed(), name_hash(layer.path()),
                                              DropoutUnit::channel),
                    operands)[0];
  }

  // Appends the op of the steps, whose operands are complete except for those of dropout and the mask.
  Feature steps(Layer& layer, const Feature& input, RecurrentCell cell, std::vector<TensorId> operands) const {
    RecurrentAttributes attributes{.cell = cell,
                                   .sequences = return_sequences,
                                   .backwards = go_backwards,
                                   .reversed = return_sequences && reverse_output,
                                   .masked = input.masked(),
                                   .begins = !initial_state.empty(),
                                   .returns_c = return_state && cell == RecurrentCell::lstm};
    if (layer.training() && recurrent_dropout != 0) {
      attributes.dropout = {static_cast<float>(recurrent_dropout), layer.seed(),
                            name_hash(layer.path() + "/recurrent_dropout")};
      for (const TensorId tensor : layer.dropout_inputs()) operands.push_back(tensor);
    }
    if (input.masked()) operands.push_back(input.mask);
    std::vector<std::string> further;
    if (layer.training()) further = {"gates", "memories", "states"};
    if (attributes.returns_c) further.emplace_back(cell_state);
    const auto outputs = layer.op(std::make_shared<Recurrent>(attributes, layer.training()), operands, further);
    TensorId y = outputs[0];
    if (return_state) {
      layer.add_output(hidden_state, last_step(layer, y));
      if (attributes.returns_c) layer.add_output(cell_state, outputs.back());
    }
    if (zero_output_for_mask && input.masked() && return_sequences) {
      y = layer.op(std::make_shared<MaskPositions>(), {y, input.mask})[0];
    }
    return layer.output(y, input.mask);
  }

  // The h after the last step. An output of all steps also has that h at the steps after it that a mask hides.
  TensorId last_step(Layer& layer, TensorId y) const {
    if (!return_sequences) return y;
    const std::int64_t steps = layer.shape(layer.output(y))[0];
    const TensorId taken = take_position(layer, y, reverse_output ? 0 : steps - 1);
    return layer.op(std::make_shared<Reshape>(layer.batch_of({units})), {taken})[0];
  }
};

struct LstmOptions final : RecurrentOptions {
  bool unit_forget_bias = true;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return RecurrentOptions::expand(layer, inputs, RecurrentCell::lstm, unit_forget_bias ? units : 0,
                                    unit_forget_bias ? checked_multiply(units, 2) : 0);
  }
};

struct GruOptions final : RecurrentOptions {
  bool reset_after = true;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!reset_after) return layer.error("reset_after false is not supported: use true, Keras' default", inputs[0]);
    return RecurrentOptions::expand(layer, inputs, RecurrentCell::gru);
  }
};

struct SimpleRnnOptions final : RecurrentOptions {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return RecurrentOptions::expand(layer, inputs, RecurrentCell::simple);
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
      .key("return_state", &O::return_state,
           "Whether the states after the last step are further outputs of the layer, which other layers name: "
           "LAYER/hidden_state and, of an lstm, LAYER/cell_state.")
      .key("initial_state", &O::initial_state,
           "The states before the first step: a layer of the same kind with return_state, or the layers whose outputs "
           "are the states (of an lstm two: hidden and cell state). Absent: 0.")
      .key("dropout", &O::dropout,
           "Share of the features of the input that become 0 in training, the same ones in all steps of a sample.",
           from_zero_to_below(1))
      .key(
          "recurrent_dropout", &O::recurrent_dropout,
          "Share of the units that become 0 in training in the product with the recurrent kernel, the same ones in all "
          "steps of a sample and for all gates (Gal and Ghahramani, 2016). Keras draws other units for each gate.",
          from_zero_to_below(1))
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
                           "Long short-term memory over sequences (steps, features); "
                           "Hochreiter and Schmidhuber (1997).")
      .key("unit_forget_bias", &O::unit_forget_bias, "Whether the initial bias of the forget gate is 1.");
}

Section gru() {
  using O = GruOptions;
  return recurrent_keys<O>("gru",
                           "Gated recurrent units over sequences (steps, features); Cho et "
                           "al. (2014). The two rows of Keras' bias are two parameters, bias and recurrent_bias.")
      .key("reset_after", &O::reset_after,
           "Whether the reset gate is applied after the product with the recurrent kernel; only true is supported.");
}

Section simple_rnn() {
  return recurrent_keys<SimpleRnnOptions>(
      "simple_rnn", "A fully connected recurrent layer over sequences (steps, features); Elman (1990).");
}

}  // namespace trainctl
