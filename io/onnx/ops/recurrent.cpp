// Translates LSTM, GRU and RNN. ONNX's operators include the product of the input with the kernel, so the Dense op
// before the recurrent op is not translated. In ONNX, steps are the first dimension of sequences, and weights have a
// dimension for the direction, gates in another order, and outputs before inputs.
//
// ONNX's operators compute a number of first steps of each sample, but leave out no steps between others. With a
// padding mask, the steps that count are therefore moved to the beginning, and each step gets the output of the last
// one of them that is not after it.
#include "core/graph/ops/recurrent.h"

#include <limits>
#include <optional>

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

// The steps of sequences that a padding mask shows.
class ShownSteps {
 public:
  // `mask` is uint8 [batch, steps], in the order in which the steps are computed.
  ShownSteps(const OnnxOp& op, const std::string& mask, std::int64_t steps) : op_(op) {
    const std::string shown = op.node("Cast", {mask}, {{"to", onnx_int64}});
    so_far_ = op.node("CumSum", {shown, op.integer(1)});
    count_ = op.node("ReduceSum", {shown, op.integers({1})}, {{"keepdims", 0}});
    last_ = op.node("Sub", {so_far_, op.integer(1)});
    // The hidden steps follow the shown ones.
    std::vector<std::int64_t> numbers;
    for (std::int64_t t = 0; t < steps; ++t) numbers.push_back(t);
    const std::string hidden_before = op.node("Sub", {op.integers(numbers), so_far_});
    const std::string after_shown = op.node("Add", {op.node("Unsqueeze", {count_, op.integers({1})}), hidden_before});
    place_ = op.node("Where", {op.node("Cast", {mask}, {{"to", onnx_bool}}), last_, after_shown});
  }

  std::string count() const { return op_.node("Cast", {count_}, {{"to", onnx_int32}}); }
  // The steps of x [batch, steps, values], the shown ones first.
  std::string first(const std::string& x) const {
    return op_.node("ScatterElements", {x, of_values(place_, x), x}, {{"axis", 1}});
  }
  // For each step the output y [batch, steps, units] of the last shown step that is not after it; if there is none,
  // `begin`, the state [batch, units] before the first step, or 0 if that is "".
  std::string spread(const std::string& y, const std::string& begin) const {
    const std::string last = of_values(op_.node("Max", {last_, op_.integer(0)}), y);
    const std::string of_steps = begin.empty() ? "" : op_.node("Unsqueeze", {begin, op_.integers({1})});
    return where_any(so_far_, op_.node("GatherElements", {y, last}, {{"axis", 1}}), of_steps);
  }
  // The last state [batch, units]; if no step is shown, `begin`, or 0 if that is "".
  std::string last(const std::string& state, const std::string& begin) const { return where_any(count_, state, begin); }

 private:
  static constexpr std::int64_t onnx_int32 = 6, onnx_int64 = 7, onnx_bool = 9;  // TensorProto.DataType

  // Numbers of steps [batch, steps] for each value of x.
  std::string of_values(const std::string& steps, const std::string& x) const {
    return op_.node("Expand", {op_.node("Unsqueeze", {steps, op_.integers({-1})}), op_.node("Shape", {x})});
  }
  std::string where_any(const std::string& count, const std::string& y, const std::string& otherwise) const {
    const std::string any = op_.node("Greater", {count, op_.integer(0)});
    return op_.node(
        "Where", {op_.node("Unsqueeze", {any, op_.integers({-1})}), y, otherwise.empty() ? op_.number(0) : otherwise});
  }

  const OnnxOp& op_;
  std::string so_far_, count_;  // shown steps up to each step [batch, steps], and of all steps [batch]
  std::string last_, place_;    // of each step, the number of the last shown step, and its place after the move
};

}  // namespace

void recurrent(const OnnxOp& op) {
  const RecurrentAttributes& a = op.as<Recurrent>().a;
  const RecurrentInputs in(a, op.inputs());
  const OnnxOp product = op.producer(0);
  require(product.is<Dense>(), "a recurrent op does not follow the product of its input with the kernel");
  const std::vector<std::int64_t> gates = gate_order(a.cell);
  const OnnxWeights kernel = product.weights(1), recurrent_kernel = op.weights(1);
  const std::int64_t columns = kernel.shape[1], units = recurrent_kernel.shape[0];

  std::string x = product.value(0);
  if (a.backwards) x = reversed_steps(op, x);
  std::optional<ShownSteps> shown;
  if (a.masked) {
    const std::string mask = op.value(static_cast<std::size_t>(in.mask));
    shown.emplace(op, a.backwards ? reversed_steps(op, mask) : mask, op.input_type(0).shape[1]);
    x = shown->first(x);
  }
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
    if (in.bias >= 0) append(op.weights(static_cast<std::size_t>(in.bias)));
    biases.resize(static_cast<std::size_t>(2 * columns));
    operands.push_back(op.weights_value(product.weights(2).name, {1, 2 * columns}, biases));
  }
  if (shown) {
    operands.resize(4);  // without a bias, its place is empty
    operands.push_back(shown->count());
  }
  const auto begin = [&](int input) { return input < 0 ? "" : op.value(static_cast<std::size_t>(input)); };
  for (const int input : {in.h, in.c}) {
    if (input < 0) continue;
    operands.resize(input == in.h ? 5 : 6);
    operands.push_back(op.node("Unsqueeze", {begin(input), op.integers({0})}));
  }
  const bool gru = a.cell == RecurrentCell::gru;
  std::vector<OnnxAttribute> attributes{{"hidden_size", units}};
  if (gru) attributes.push_back({"linear_before_reset", 1});
  const char* kind = gru ? "GRU" : a.cell == RecurrentCell::lstm ? "LSTM" : "RNN";
  // The outputs: all h [steps, 1, batch, units], the last h [1, batch, units] and, of LSTM, the last c.
  const std::vector<std::string> outputs = op.node_outputs(kind, operands, attributes, a.returns_c ? 3 : 2);
  std::string y = op.node("Squeeze", {outputs[a.sequences ? 0 : 1], op.integers({a.sequences ? 1 : 0})});
  if (a.sequences) y = with_batch_and_steps_swapped(op, y);
  if (shown) y = a.sequences ? shown->spread(y, begin(in.h)) : shown->last(y, begin(in.h));
  op.set_output(a.sequences && a.reversed ? reversed_steps(op, y) : y);
  if (!a.returns_c) return;
  const std::string c = op.node("Squeeze", {outputs[2], op.integers({0})});
  op.set_output(shown ? shown->last(c, begin(in.c)) : c, Channels::last, 1);
}

}  // namespace trainctl::onnx
