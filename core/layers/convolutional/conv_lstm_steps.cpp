// Unrolls a convolutional LSTM. The gates are in Keras' order: input, forget, candidate, output.
#include "core/layers/convolutional/conv_lstm_steps.h"

#include <utility>

#include "core/base/format.h"
#include "core/base/random.h"
#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/activations.h"
#include "core/layers/expression/layer_expression.h"

namespace trainctl {
namespace {

// The value of an activation of x as an expression.
std::string applied(const Choice& activation, const std::string& x) {
  const auto& options = activation.as<ActivationOptions>();
  if (activation.name == "linear") return x;
  if (activation.name == "leaky_relu") return format("leaky_relu({}, {})", x, options.negative_slope);
  if (activation.name == "elu") return format("elu({}, {})", x, options.alpha);
  if (activation.name == "gelu") return format("gelu({}, {})", x, options.approximate ? "True" : "False");
  return format("{}({})", activation.name, x);
}

// Appends the steps of x [N, T, C], each [N, 1, C]. They are taken by halves, so that their gradients are not added
// step by step at the size of x.
void take_steps(Layer& layer, TensorId x, std::vector<TensorId>& steps) {
  const Shape all = layer.type(layer.output(x)).shape;
  if (all[1] == 1) return steps.push_back(x);
  const TensorId image = with_shape(layer, x, {all[0], 1, all[1], all[2]});
  const std::int64_t half = all[1] / 2;
  for (const auto& [begin, count] : {std::pair{std::int64_t{0}, half}, {half, all[1] - half}}) {
    const Borders others{{0, begin}, {0, all[1] - begin - count}};
    const TensorId part = layer.op(std::make_shared<Crop2d>(others), {image})[0];
    take_steps(layer, with_shape(layer, part, {all[0], count, all[2]}), steps);
  }
}

// x where the mask shows the step, otherwise `before` (0 if there is none).
TensorId where_shown(Layer& layer, TensorId shown, TensorId x, TensorId before) {
  if (before == no_tensor) return value_of(layer, "where(m, x, 0)", {{"m", shown}, {"x", x}});
  return value_of(layer, "where(m, x, y)", {{"m", shown}, {"x", x}, {"y", before}});
}

}  // namespace

TensorId with_shape(Layer& layer, TensorId x, Shape shape) {
  return layer.op(std::make_shared<Reshape>(std::move(shape)), {x})[0];
}

TensorId dropped(Layer& layer, TensorId x, double rate, const std::string& purpose, DropoutUnit unit) {
  std::vector<TensorId> operands = layer.dropout_inputs();
  operands.insert(operands.begin(), x);
  return layer.op(
      std::make_shared<Dropout>(static_cast<float>(rate), layer.seed(), name_hash(layer.path() + purpose), unit),
      operands)[0];
}

std::vector<TensorId> steps_of(Layer& layer, TensorId x) {
  std::vector<TensorId> steps;
  take_steps(layer, x, steps);
  return steps;
}

std::vector<TensorId> steps_of_mask(Layer& layer, const Feature& input, std::int64_t rank) {
  if (!input.masked()) return {};
  const TensorId numbers = value_of(layer, "m", {{"m", input.mask}});
  const Shape all = layer.type(layer.output(numbers)).shape;
  std::vector<TensorId> steps = steps_of(layer, with_shape(layer, numbers, {all[0], all[1], 1}));
  const Shape of_step(std::vector<std::int64_t>(static_cast<std::size_t>(rank - 1), 1));
  for (TensorId& step : steps) step = with_shape(layer, step, of_step.with_front(all[0]));
  return steps;
}

std::vector<TensorId> ConvLstmCell::run(const std::vector<TensorId>& steps, const std::vector<TensorId>& shown,
                                        const Shape& of_step, ConvLstmStates& states) const {
  std::vector<TensorId> all;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    ConvLstmStates after = next(with_shape(layer, steps[step], of_step), states);
    if (shown.empty()) {
      all.push_back(after.h);
    } else {  // at a step that is left out, the states stay, and the output is that of the step before, at first 0
      const TensorId output_before = all.empty() ? no_tensor : all.back();
      all.push_back(where_shown(layer, shown[step], after.h, output_before));
      after.h = states.h == output_before ? all.back() : where_shown(layer, shown[step], after.h, states.h);
      after.c = where_shown(layer, shown[step], after.c, states.c);
    }
    states = after;
  }
  return all;
}

// x [N, P..., 4 filters] has the convolved input and the bias.
ConvLstmStates ConvLstmCell::next(TensorId x, const ConvLstmStates& before) const {
  const TensorId z = before.h == no_tensor ? x : value_of(layer, "x + r", {{"x", x}, {"r", from_state(before.h)}});
  const auto gate = [&](int number, const Choice& function) {
    return applied(function, format("z[..., {}:{}]", number * filters, (number + 1) * filters));
  };
  const std::string candidate = gate(0, recurrent_activation) + " * " + gate(2, activation);
  const std::string kept = gate(1, recurrent_activation) + " * c + " + candidate;
  const TensorId c = before.c == no_tensor ? value_of(layer, candidate, {{"z", z}})
                                           : value_of(layer, kept, {{"z", z}, {"c", before.c}});
  const std::string output = gate(3, recurrent_activation) + " * " + applied(activation, "c");
  return {value_of(layer, output, {{"z", z}, {"c", c}}), c};
}

// In training the same values of the states of all steps are dropped.
TensorId ConvLstmCell::from_state(TensorId h) const {
  if (layer.training() && recurrent_dropout != 0) {
    h = dropped(layer, h, recurrent_dropout, "/recurrent_dropout", DropoutUnit::element);
  }
  return layer.op(convolution, {h, kernel})[0];
}

}  // namespace trainctl
