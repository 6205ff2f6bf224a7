// conv_lstm1d, conv_lstm2d and conv_lstm3d: kernel (size..., in, 4 filters), recurrent_kernel (size..., filters, 4
// filters), bias (4 filters). The gates are in Keras' order: input, forget, candidate, output.
#include <algorithm>
#include <functional>

#include "core/base/format.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/activations.h"
#include "core/layers/convolutional/conv_lstm_steps.h"
#include "core/layers/expression/layer_expression.h"
#include "core/layers/initializers.h"
#include "core/layers/recurrent_states.h"
#include "core/layers/regularizers.h"
#include "core/layers/table.h"
#include "core/layers/window.h"
#include "core/spec/one_or_more.h"

namespace trainctl {
namespace {

// An LSTM over sequences of rows (1 axis), images (2 axes) or volumes (3 axes), whose products are convolutions.
template <std::size_t axes>
struct ConvLstmOptions final : ChainedLayer {
  using Sizes = std::array<std::int64_t, axes>;
  static constexpr std::size_t window_axes = std::max<std::size_t>(axes, 2);  // a row is an image one pixel high
  using ConvWindow = WindowOf<window_axes>;

  std::int64_t filters = 0;
  Sizes kernel_size{};
  Sizes strides = ones();
  PaddingMode padding = PaddingMode::valid;
  Sizes dilation_rate = ones();
  ActivationChoice activation{"tanh"};
  ActivationChoice recurrent_activation{"sigmoid"};
  bool use_bias = true;
  InitializerChoice kernel_initializer{"glorot_uniform"};
  InitializerChoice recurrent_initializer{"orthogonal"};
  InitializerChoice bias_initializer{"zeros"};
  bool unit_forget_bias = true;
  RegularizerChoice kernel_regularizer, recurrent_regularizer, bias_regularizer;
  bool return_sequences = false;
  bool return_state = false;
  OneOrMore<Reference> initial_state;
  double dropout = 0;
  double recurrent_dropout = 0;
  bool go_backwards = false;

  MaskUse mask_use() const override { return return_sequences ? MaskUse::own : MaskUse::ends; }
  bool numbers_samples() const override { return dropout != 0 || recurrent_dropout != 0; }
  std::vector<Reference> references() const override {
    if (initial_state.empty()) return ChainedLayer::references();
    std::vector<Reference> all = initial_state.items;
    all.insert(all.begin(), from);
    return all;
  }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Feature& input = inputs[0];
    if (!is_supported(layer, input)) return {};
    const Shape x = layer.type(input).shape;
    ConvWindow window;
    set(window.size, kernel_size);
    set(window.strides, strides);
    set(window.dilation, dilation_rate);
    typename ConvWindow::Sizes sizes = ConvWindow().size;
    std::copy_n(x.sizes().begin() + 2, axes, sizes.end() - axes);
    if (const auto wrong = resolve_padding(window, padding, sizes, "kernel")) return layer.error(*wrong, input);
    const TensorId steps = in_steps(layer, input.tensor);
    const TensorId images = with_shape(layer, steps, whole(checked_multiply(x[0], x[1]), sizes, x.back()));
    const TensorId y = layer.op(std::make_shared<Conv<window_axes>>(window, 1), operands(layer, images, x.back()))[0];
    return outputs(layer, y, x[1], inputs);
  }

  static Keys<ConvLstmOptions> keys(const char* kind, const char* meaning) {
    using O = ConvLstmOptions;
    return layer_keys<O>(kind, meaning)
        .required("filters", &O::filters, "Number of channels of the output and of the states.",
                  between(1, (max_channels - 3) / 4))
        .required("kernel_size", &O::kernel_size, "Size of the windows of both convolutions.", at_least(1))
        .key("strides", &O::strides, "Steps of the input's window; the states' window has steps of 1.", at_least(1))
        .key("padding", &O::padding, "Padding of the input; the states have the padding same.")
        .key("dilation_rate", &O::dilation_rate, "Distance between the elements of the input's window.", at_least(1))
        .key("activation", &O::activation, "Activation of candidates and outputs.")
        .key("recurrent_activation", &O::recurrent_activation, "Activation of the gates.")
        .key("use_bias", &O::use_bias, "Whether a bias is added.")
        .key("kernel_initializer", &O::kernel_initializer, "Initial values of the kernel.")
        .key("recurrent_initializer", &O::recurrent_initializer, "Initial values of the recurrent kernel.")
        .key("bias_initializer", &O::bias_initializer, "Initial values of the bias.")
        .key("unit_forget_bias", &O::unit_forget_bias, "Whether the initial bias of the forget gate is 1.")
        .key("kernel_regularizer", &O::kernel_regularizer, "A penalty on the kernel.")
        .key("recurrent_regularizer", &O::recurrent_regularizer, "A penalty on the recurrent kernel.")
        .key("bias_regularizer", &O::bias_regularizer, "A penalty on the bias.")
        .key("return_sequences", &O::return_sequences, "Whether the output has all steps instead of only the last one.")
        .key("return_state", &O::return_state,
             "Whether the states after the last step are further outputs of the layer, which other layers name: "
             "LAYER/hidden_state and LAYER/cell_state.")
        .key("initial_state", &O::initial_state,
             "The states before the first step: a layer of the same kind with return_state, or the two layers whose "
             "outputs are the hidden and the cell state. Absent: 0.")
        .key("dropout", &O::dropout,
             "Share of the values of a step's input that become 0 in training, the same ones in all steps of a sample "
             "and for all gates. Keras draws other ones for each gate.",
             from_zero_to_below(1))
        .key("recurrent_dropout", &O::recurrent_dropout,
             "Share of the values of the hidden state that become 0 in training in the convolution with the recurrent "
             "kernel, the same ones in all steps of a sample and for all gates. Keras draws other ones for each gate.",
             from_zero_to_below(1))
        .key("go_backwards", &O::go_backwards,
             "Whether steps are processed from the last to the first; an output of all steps has them in that order.");
  }

 private:
  static constexpr Sizes ones() {
    Sizes sizes{};
    sizes.fill(1);
    return sizes;
  }
  static void set(typename ConvWindow::Sizes& of_window, const Sizes& sizes) {
    std::copy(sizes.begin(), sizes.end(), of_window.end() - axes);
  }
  static Shape whole(std::int64_t samples, const typename ConvWindow::Sizes& sizes, std::int64_t channels) {
    std::vector<std::int64_t> all(sizes.begin(), sizes.end());
    all.push_back(channels);
    return Shape(std::move(all)).with_front(samples);
  }

  bool is_supported(Layer& layer, const Feature& input) const {
    const Shape x = layer.shape(input);
    const char* axis_names[] = {"length", "height, width", "depth, height, width"};
    if (x.rank() != static_cast<std::int64_t>(axes) + 2) {
      layer.error(format("input {} is not a sequence (steps, {}, channels)", to_string(x), axis_names[axes - 1]),
                  input);
      return false;
    }
    for (const ActivationChoice* chosen : {&activation, &recurrent_activation}) {
      if (chosen->name != "softmax") continue;
      layer.error("the activation softmax is not element-wise: use another one", input);
      return false;
    }
    if (input.masked() && layer.shape(layer.output(input.mask)).rank() > 1) {
      layer.error(
          "the input has a padding mask within its steps, which the layer cannot read: it leaves out whole steps",
          input);
      return false;
    }
    return true;
  }

  TensorId parameter(Layer& layer, const char* name, std::int64_t channels, const Choice& initializer,
                     const RegularizerChoice& regularizer) const {
    std::vector<std::int64_t> sizes(kernel_size.begin(), kernel_size.end());
    sizes.insert(sizes.end(), {channels, 4 * filters});
    const Shape shape(std::move(sizes));
    return layer.parameter(name, shape, make_initializer(initializer, shape), true, penalty_of(regularizer));
  }

  // The input; in training with the same values of all steps of a sample dropped.
  TensorId in_steps(Layer& layer, TensorId x) const {
    if (!layer.training() || dropout == 0) return x;
    const Shape whole = layer.type(layer.output(x)).shape;
    const Shape steps{whole[0], whole[1], whole.without_front().without_front().count()};
    return with_shape(layer, dropped(layer, with_shape(layer, x, steps), dropout, "", DropoutUnit::channel), whole);
  }

  // The images, the kernel and the bias.
  std::vector<TensorId> operands(Layer& layer, TensorId images, std::int64_t channels) const {
    std::vector<TensorId> ids{images, parameter(layer, "kernel", channels, kernel_initializer, kernel_regularizer)};
    if (!use_bias) return ids;
    Initializer initializer = make_initializer(bias_initializer, {4 * filters});
    initializer.ones_begin = unit_forget_bias ? filters : 0;
    initializer.ones_end = unit_forget_bias ? 2 * filters : 0;
    ids.push_back(layer.parameter("bias", {4 * filters}, initializer, false, penalty_of(bias_regularizer)));
    return ids;
  }

  // The output of the layer for y [N * T, P..., 4 filters], the convolved inputs of all `count` steps.
  Feature outputs(Layer& layer, TensorId y, std::int64_t count, const std::vector<Feature>& inputs) const {
    const Shape of_steps = layer.type(layer.output(y)).shape;
    const std::int64_t samples = of_steps[0] / count;
    const Shape of_step = of_steps.without_front().with_front(samples);
    typename ConvWindow::Sizes sizes{};
    std::copy_n(of_steps.sizes().begin() + 1, window_axes, sizes.begin());
    ConvWindow window;
    set(window.size, kernel_size);
    const auto wrong = resolve_padding(window, PaddingMode::same, sizes, "kernel");
    require(!wrong, "conv_lstm: the states' window does not fit");
    const TensorId kernel = parameter(layer, "recurrent_kernel", filters, recurrent_initializer, recurrent_regularizer);
    std::vector<TensorId> steps =
        steps_of(layer, with_shape(layer, y, {samples, count, of_step.without_front().count()}));
    std::vector<TensorId> shown = steps_of_mask(layer, inputs[0], of_step.rank());
    if (go_backwards) {
      std::reverse(steps.begin(), steps.end());
      std::reverse(shown.begin(), shown.end());
    }
    // The shape of a sample without the height of a row.
    const Shape positions(std::vector<std::int64_t>(of_step.sizes().end() - axes - 1, of_step.sizes().end() - 1));
    const Shape output = joined(positions, filters);
    ConvLstmStates states;
    if (!initial_state.empty()) {
      const auto given = initial_states(layer, inputs, 2, output);
      if (!given) return {};
      const Shape state = of_step.with_back(filters);
      states = {with_shape(layer, (*given)[0], state), with_shape(layer, (*given)[1], state)};
    } else if (count == 1) {  // a state that an op computes, so that the recurrent kernel has a use and a gradient of 0
      states.h = value_of(layer, format("zeros_like(z[..., :{}])", filters), {{"z", with_shape(layer, y, of_step)}});
    }
    const ConvLstmCell cell{.layer = layer,
                            .filters = filters,
                            .activation = activation,
                            .recurrent_activation = recurrent_activation,
                            .convolution = std::make_shared<Conv<window_axes>>(window, 1),
                            .kernel = kernel,
                            .recurrent_dropout = recurrent_dropout};
    std::vector<TensorId> all = cell.run(steps, shown, of_step, states);
    const TensorId last = with_shape(layer, all.back(), output.with_front(samples));
    if (return_state) {
      layer.add_output(hidden_state,
                       states.h == all.back() ? last : with_shape(layer, states.h, output.with_front(samples)));
      layer.add_output(cell_state, with_shape(layer, states.c, output.with_front(samples)));
    }
    if (!return_sequences) return layer.output(last);
    for (TensorId& state_of_step : all) state_of_step = with_shape(layer, state_of_step, {samples, output.count()});
    return layer.output(with_shape(layer, layer.op(std::make_shared<Concatenate>(), all)[0],
                                   output.with_front(count).with_front(samples)),
                        inputs[0].mask);
  }

  static Shape joined(const Shape& positions, std::int64_t channels) {
    std::vector<std::int64_t> sizes = positions.sizes();
    sizes.push_back(channels);
    return Shape(std::move(sizes));
  }
};

}  // namespace

Section conv_lstm1d() {
  return ConvLstmOptions<1>::keys("conv_lstm1d", "conv_lstm2d over sequences of rows (steps, length, channels).");
}

Section conv_lstm2d() {
  return ConvLstmOptions<2>::keys(
      "conv_lstm2d",
      "Long short-term memory over sequences of images (steps, height, width, channels), such as films, with "
      "convolutions instead of products; Shi et al. (2015). Each step adds its own ops to the program, so that "
      "planning takes more time and memory the more steps there are.");
}

Section conv_lstm3d() {
  return ConvLstmOptions<3>::keys("conv_lstm3d",
                                  "conv_lstm2d over sequences of volumes (steps, depth, height, width, channels).");
}

}  // namespace trainctl
