// Translates LSTM, GRU and RNN. ONNX's operators include the product of the input with the kernel, so the Dense op
// before the recurrent op is not translated. In ONNX, steps are the first dimension of sequences, and weights have a
// dimension for the direction, gates in another order, and outputs before inputs.
#include "core/graph/ops/recurrent.h"

#include <limits>

#include "core/base/error.h"
#include "core/graph/ops/dense.h"
#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

// Returns the index among Keras' gates of each of ONNX's gates. ONNX's order for LSTM is input, output, forget,
// candidate; for GRU it is Keras' order.
std::vector<std::int64_t> gate_order(RecurrentCell cell) {
  if (cell == RecurrentCell::lstm) return {0, 3, 1, 2};
  if (cell == RecurrentCell::gru) return {0, 1, 2};
  return {0};
}

// Transposes a kernel [in, gates * units] to [gates * units, in], with gates in ONNX's order.
std::vector<float> gates_first(const OnnxWeights& kernel, const std::vector<std::int64_t>& gates) {
  const std::int64_t in = kernel.shape[0], columns = kernel.shape[1], units = columns / std::ssize(gates);
  std::vector<float> result;
  for (const std::int64_t gate : gates) {
    for (std::int64_t column = gate * units; column < (gate + 1) * units; ++column) {
      for (std::int64_t row = 0; row < in; ++row) {
        result.push_back(kernel.values[static_cast<std::size_t>(row * columns + column)]);
      }
    }
  }
  return result;
}

// Reverses the steps of sequences [batch, steps, ...].
std::string reversed_steps(const OnnxOp& op, const std::string& x) {
  const std::string all = op.integers({std::numeric_limits<std::int64_t>::min()});
  return op.node("Slice", {x, op.integers({-1}), all, op.integers({1}), op.integers({-1})});
}

// Converts [batch, steps, ...] to [steps, batch, ...] or back.
std::string with_batch_and_steps_swapped(const OnnxOp& op, const std::string& x) {
  return op.node("Transpose", {x}, {{"perm", std::vector<std::int64_t>{1, 0, 2}}});
}

}  // namespace

void recurrent(const OnnxOp& op) {
  const RecurrentAttributes& a = op.as<Recurrent>().a;
  if (a.masked) {
    throw Error(ErrorKind::config, op.name("recurrent") +
                                       ": ONNX has no recurrent layer that leaves out the steps of a "
                                       "padding mask");
  }
  const OnnxOp product = op.producer(0);
  require(product.is<Dense>(), "a recurrent op does not follow the product of its input with the kernel");
  const std::vector<std::int64_t> gates = gate_order(a.cell);
  const OnnxWeights kernel = product.weights(1), recurrent_kernel = op.weights(1);
  const std::int64_t columns = kernel.shape[1], units = recurrent_kernel.shape[0];

  std::string x = product.value(0);
  if (a.backwards) x = reversed_steps(op, x);
  std::vector<std::string> operands{with_batch_and_steps_swapped(op, x)};
  operands.push_back(op.weights_value(kernel.name, {1, columns, kernel.shape[0]}, gates_first(kernel, gates)));
  operands.push_back(
      op.weights_value(recurrent_kernel.name, {1, columns, units}, gates_first(recurrent_kernel, gates)));
  if (product.inputs() > 2) {  // the biases of both products, one after the other
    std::vector<float> biases;
    const auto append = [&](const OnnxWeights& bias) {
      const std::vector<float> ordered = gates_first({bias.name, bias.shape.with_front(1), bias.values}, gates);
      biases.insert(biases.end(), ordered.begin(), ordered.end());
    };
    append(product.weights(2));
    if (op.inputs() > 2) append(op.weights(2));
    biases.resize(static_cast<std::size_t>(2 * columns));
    operands.push_back(op.weights_value(product.weights(2).name, {1, 2 * columns}, biases));
  }
  const bool gru = a.cell == RecurrentCell::gru;
  std::vector<OnnxAttribute> attributes{{"hidden_size", units}};
  if (gru) attributes.push_back({"linear_before_reset", 1});
  // The first output has all states [steps, 1, batch, units], the second the last state [1, batch, units].
  const char* kind = gru ? "GRU" : a.cell == RecurrentCell::lstm ? "LSTM" : "RNN";
  const std::string states = op.node(kind, operands, attributes, a.sequences ? 0 : 1);
  std::string y = op.node("Squeeze", {states, op.integers({a.sequences ? 1 : 0})});
  if (a.sequences) y = with_batch_and_steps_swapped(op, y);
  op.set_output(a.sequences && a.reversed ? reversed_steps(op, y) : y);
}

}  // namespace trainctl::onnx
