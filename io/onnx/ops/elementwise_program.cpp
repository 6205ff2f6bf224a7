// Translates programs of elementwise functions, operator by operator. Comparisons stay conditions (bool) as long as
// only conditions are needed.
#include <algorithm>

#include "core/graph/ops/elementwise/elementwise.h"
#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

constexpr std::int64_t onnx_float = 1, onnx_bool = 9;  // TensorProto.DataType

// The operator that computes the function with the same operands; "" if there is none.
std::string operator_of(ScalarFunction function) {
  using enum ScalarFunction;
  switch (function) {
    case negative:
      return "Neg";
    case abs:
      return "Abs";
    case sign:
      return "Sign";
    case exp:
      return "Exp";
    case log:
      return "Log";
    case sqrt:
      return "Sqrt";
    case reciprocal:
      return "Reciprocal";
    case sin:
      return "Sin";
    case cos:
      return "Cos";
    case tan:
      return "Tan";
    case arctan:
      return "Atan";
    case tanh:
      return "Tanh";
    case sigmoid:
      return "Sigmoid";
    case softplus:
      return "Softplus";
    case erf:
      return "Erf";
    case floor:
      return "Floor";
    case ceil:
      return "Ceil";
    case round:
      return "Round";
    case add:
      return "Add";
    case subtract:
      return "Sub";
    case multiply:
      return "Mul";
    case divide:
      return "Div";
    case power:
      return "Pow";
    case maximum:
      return "Max";
    case minimum:
      return "Min";
    default:
      return "";
  }
}

// The operator that computes a condition from numbers; "" if there is none.
std::string comparison_of(ScalarFunction function) {
  using enum ScalarFunction;
  switch (function) {
    case isnan:
      return "IsNaN";
    case less:
      return "Less";
    case less_equal:
      return "LessOrEqual";
    case equal:
    case not_equal:
      return "Equal";
    default:
      return "";
  }
}

// The operator that computes a condition from conditions; "" if there is none.
std::string logic_of(ScalarFunction function) {
  using enum ScalarFunction;
  switch (function) {
    case logical_not:
      return "Not";
    case logical_and:
      return "And";
    case logical_or:
      return "Or";
    case logical_xor:
      return "Xor";
    default:
      return "";
  }
}

// The values of the steps of a program. Each is added to the model when it is first needed.
class Steps {
 public:
  Steps(const OnnxOp& op, const ElementwiseProgram& program, std::vector<std::string> inputs)
      : op_(op), program_(program), inputs_(std::move(inputs)) {
    numbers_.resize(program.steps.size());
    conditions_.resize(program.steps.size());
  }

  // The value of a step in float32.
  std::string number(int step) {
    std::string& name = numbers_[static_cast<std::size_t>(step)];
    if (!name.empty()) return name;
    const ScalarStep& of = program_.steps[static_cast<std::size_t>(step)];
    if (of.function == ScalarFunction::input) return name = inputs_[static_cast<std::size_t>(of.index)];
    if (of.function == ScalarFunction::constant) return name = op_.number(static_cast<float>(of.value));
    if (of.function == ScalarFunction::stop_gradient) return name = number(of.operands[0]);
    if (is_condition(of.function)) return name = cast(condition(step), onnx_float);
    return name = computed(of);
  }

 private:
  static bool is_condition(ScalarFunction function) {
    return function == ScalarFunction::isfinite || !comparison_of(function).empty() || !logic_of(function).empty();
  }

  std::string cast(const std::string& x, std::int64_t type) const { return op_.node("Cast", {x}, {{"to", type}}); }

  // Whether the value of a step is not 0, as a bool.
  std::string condition(int step) {
    std::string& name = conditions_[static_cast<std::size_t>(step)];
    if (!name.empty()) return name;
    const ScalarStep& of = program_.steps[static_cast<std::size_t>(step)];
    if (!is_condition(of.function)) return name = cast(number(step), onnx_bool);
    if (of.function == ScalarFunction::isfinite) {
      const std::string x = number(of.operands[0]);
      return name = op_.node("Not", {op_.node("Or", {op_.node("IsNaN", {x}), op_.node("IsInf", {x})})});
    }
    const std::string logic = logic_of(of.function);
    std::vector<std::string> operands;
    for (int k = 0; k < operands_of(of.function); ++k) {
      const int operand = of.operands[static_cast<std::size_t>(k)];
      operands.push_back(logic.empty() ? number(operand) : condition(operand));
    }
    if (!logic.empty()) return name = op_.node(logic, operands);
    const std::string compared = op_.node(comparison_of(of.function), operands);
    return name = of.function == ScalarFunction::not_equal ? op_.node("Not", {compared}) : compared;
  }

  // The value of a step whose function computes a number.
  std::string computed(const ScalarStep& of) {
    using enum ScalarFunction;
    const auto [a, b, c] = of.operands;
    if (of.function == where) return op_.node("Where", {condition(a), number(b), number(c)});
    const std::string x = number(a), y = b < 0 ? "" : number(b);
    switch (of.function) {
      case rsqrt:
        return op_.node("Reciprocal", {op_.node("Sqrt", {x})});
      case expm1:
        return expm1_of(x);
      case log1p:
        return log1p_of(x);
      case floor_divide:
        return op_.node("Round", {op_.node("Div", {op_.node("Sub", {x, mod_of(x, y)}), y})});
      case mod:
        return mod_of(x, y);
      default:
        return op_.node(operator_of(of.function), b < 0 ? std::vector{x} : std::vector{x, y});
    }
  }

  // The rest of a division, with the sign of the divisor.
  std::string mod_of(const std::string& x, const std::string& y) {
    const std::string rest = op_.node("Mod", {x, y}, {{"fmod", 1}});
    const std::string differs = op_.node("Less", {op_.node("Mul", {rest, y}), op_.number(0)});
    return op_.node("Where", {differs, op_.node("Add", {rest, y}), rest});
  }

  // e^x - 1 cancels near 0; there it is 2 t / (1 - t) with t = tanh(x / 2).
  std::string expm1_of(const std::string& x) {
    const std::string t = op_.node("Tanh", {op_.node("Mul", {x, op_.number(0.5f)})});
    const std::string near = op_.node("Div", {op_.node("Add", {t, t}), op_.node("Sub", {op_.number(1), t})});
    return op_.node("Where", {is_near(x), near, op_.node("Sub", {op_.node("Exp", {x}), op_.number(1)})});
  }

  // log(1 + x) loses the digits of a small x; there it is 2 atanh(x / (x + 2)).
  std::string log1p_of(const std::string& x) {
    const std::string half = op_.node("Atanh", {op_.node("Div", {x, op_.node("Add", {x, op_.number(2)})})});
    const std::string far = op_.node("Log", {op_.node("Add", {x, op_.number(1)})});
    return op_.node("Where", {is_near(x), op_.node("Add", {half, half}), far});
  }

  std::string is_near(const std::string& x) { return op_.node("Less", {op_.node("Abs", {x}), op_.number(0.5f)}); }

  const OnnxOp& op_;
  const ElementwiseProgram& program_;
  std::vector<std::string> inputs_, numbers_, conditions_;
};

// A position of the channels in which all inputs are broadcast correctly: only inputs of the outputs' rank, and single
// values, may have them first.
Channels channels_of(const OnnxOp& op) {
  for (std::size_t i = 0; i < op.inputs(); ++i) {
    const Shape& x = op.input_type(i).shape;
    const bool single = x.count() == 1 && x.rank() < 3;
    if (!single && (op.is_weights(i) || x.rank() != op.output_type().shape.rank())) return Channels::last;
  }
  return op.channels();
}

std::string input_of(const OnnxOp& op, std::size_t input, Channels channels) {
  if (op.is_weights(input)) return op.weights_value(input);
  const std::string x = op.value(input, channels);
  const DType dtype = op.input_type(input).dtype;
  return dtype == DType::int32 || dtype == DType::uint8 ? op.node("Cast", {x}, {{"to", onnx_float}}) : x;
}

// The inputs on which a result depends.
std::vector<bool> inputs_of(const ElementwiseProgram& program, int result) {
  std::vector<bool> inputs(static_cast<std::size_t>(program.inputs)), needed(program.steps.size());
  needed[static_cast<std::size_t>(result)] = true;
  for (std::size_t i = program.steps.size(); i-- > 0;) {
    const ScalarStep& step = program.steps[i];
    if (!needed[i]) continue;
    if (step.function == ScalarFunction::input) inputs[static_cast<std::size_t>(step.index)] = true;
    for (const int operand : step.operands) {
      if (operand >= 0) needed[static_cast<std::size_t>(operand)] = true;
    }
  }
  return inputs;
}

// The result in the shape of the outputs: repeated along the dimensions of the inputs on which it does not depend, and
// along the dimensions that no input has.
std::string expanded(const OnnxOp& op, std::string result, bool depends_on_all,
                     const std::vector<std::string>& inputs) {
  const auto& def = op.as<Elementwise>();
  if (!depends_on_all) {
    std::string sum = inputs[0];
    for (std::size_t i = 1; i < inputs.size(); ++i) sum = op.node("Add", {sum, inputs[i]});
    result = op.node("Expand", {result, op.node("Shape", {sum})});
  }
  if (def.expanded.empty()) return result;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(op.output_type().shape.rank()), 1);
  for (const ExpandedDimension& of : def.expanded) {
    sizes[sizes.size() - 1 - static_cast<std::size_t>(of.from_last)] = of.size;
  }
  return op.node("Expand", {result, op.integers(sizes)});
}

}  // namespace

void elementwise(const OnnxOp& op) {
  const auto& def = op.as<Elementwise>();
  const Channels channels = def.expanded.empty() ? channels_of(op) : Channels::last;
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < op.inputs(); ++i) inputs.push_back(input_of(op, i, channels));
  Steps steps(op, def.program, inputs);
  for (std::size_t r = 0; r < def.program.results.size(); ++r) {
    const int result = def.program.results[r];
    const std::vector<bool> of = inputs_of(def.program, result);
    const bool depends_on_all = std::find(of.begin(), of.end(), false) == of.end();
    op.set_output(expanded(op, steps.number(result), depends_on_all, inputs), channels, r);
  }
}

}  // namespace trainctl::onnx
