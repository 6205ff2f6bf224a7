// Functions of keras.ops: those that are expressions themselves, reductions, and changes of shape.
#include "core/layers/expression/functions.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "core/base/format.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/reshaping/permute.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

// A call of a function, with its arguments by the names of the parameters.
class Call {
 public:
  Call(ExpressionBuilder& builder, const Expression& call, const std::string& function, std::string_view parameters);

  ExpressionBuilder& builder;
  int column;
  std::string function;
  std::map<std::string, ExpressionOperand> arguments;  // of all parameters

  [[noreturn]] void fail(const std::string& message) const {
    throw ExpressionError(column, format("{}(): {}", function, message));
  }
  const ExpressionOperand& of(const std::string& name) const { return arguments.at(name); }
  const ExpressionOperand& tensor(const std::string& name) const {
    if (!of(name).is_tensor()) fail(format("{} must be a tensor", name));
    return of(name);
  }
  bool flag(const std::string& name) const {
    const ExpressionOperand& value = of(name);
    if (value.kind != ExpressionOperand::Kind::boolean && value.kind != ExpressionOperand::Kind::number) {
      fail(format("{} must be True or False", name));
    }
    return value.number != 0;
  }
  std::int64_t whole(const ExpressionOperand& value, const std::string& name) const {
    const bool is_whole = value.kind == ExpressionOperand::Kind::number && std::floor(value.number) == value.number &&
                          std::abs(value.number) < 1e15;
    if (!is_whole) fail(format("{} must be a whole number, or a list of them", name));
    return static_cast<std::int64_t>(value.number);
  }
  std::vector<std::int64_t> whole_numbers(const std::string& name) const {
    const ExpressionOperand& value = of(name);
    if (value.kind != ExpressionOperand::Kind::list) return {whole(value, name)};
    std::vector<std::int64_t> numbers;
    for (const ExpressionOperand& item : value.items) numbers.push_back(whole(item, name));
    return numbers;
  }
  // A dimension of a tensor with `rank` dimensions, counted from 0.
  int axis_below(std::int64_t rank, std::int64_t number) const {
    if (number < -rank || number >= rank) fail(format("axis {} is not one of {} dimensions", number, rank));
    return static_cast<int>(number < 0 ? number + rank : number);
  }
  // The dimensions of x that `axis` names, ascending.
  std::vector<int> axes(const ExpressionOperand& x) const;
  // The single dimension that `axis` names, other than that of the samples.
  int axis(const ExpressionOperand& x, const char* name = "axis") const {
    const auto numbers = whole_numbers(name);
    if (numbers.size() != 1) fail(format("{} must be one number", name));
    return not_samples(x, axis_below(x.rank(), numbers[0]));
  }
  int not_samples(const ExpressionOperand& x, int axis) const {
    if (axis == 0 && x.has_samples) fail("axis 0 is that of the samples, which do not depend on each other");
    return axis;
  }
};

// A parameter and the text of its default, such as "axis=None".
struct Parameter {
  std::string name, value;
};

std::vector<Parameter> parameters_of(std::string_view text) {
  std::vector<Parameter> parameters;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t equals = std::min(word.find('='), word.size());
    parameters.push_back({std::string(word.substr(0, equals)),
                          equals < word.size() ? std::string(word.substr(equals + 1)) : std::string()});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parameters;
}

Call::Call(ExpressionBuilder& to, const Expression& call, const std::string& name, std::string_view text)
    : builder(to), column(call.column), function(name) {
  const std::vector<Parameter> parameters = parameters_of(text);
  if (call.operands.size() > parameters.size()) {
    fail(format("{} arguments are given, but it has {}: {}", call.operands.size(), parameters.size(), text));
  }
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    arguments[parameters[i].name] = builder.evaluate(call.operands[i]);
  }
  for (const auto& [keyword, value] : call.keywords) {
    const bool known = std::any_of(parameters.begin(), parameters.end(),
                                   [&keyword = keyword](const Parameter& of) { return of.name == keyword; });
    if (!known) fail(format("there is no argument '{}'; the arguments are: {}", keyword, text));
    if (arguments.contains(keyword)) fail(format("the argument {} is given twice", keyword));
    arguments[keyword] = builder.evaluate(value);
  }
  for (const Parameter& of : parameters) {
    if (arguments.contains(of.name)) continue;
    if (of.value.empty()) fail(format("the argument {} is missing", of.name));
    arguments[of.name] = builder.evaluate(parse_expression(of.value), {});
    arguments[of.name].column = column;
  }
}

std::vector<int> Call::axes(const ExpressionOperand& x) const {
  std::vector<int> found;
  if (of("axis").kind == ExpressionOperand::Kind::none) {
    if (x.has_samples && !builder.scope().reduces_samples) {
      fail("axis is missing; without it, all samples would be one value, but samples do not depend on each other");
    }
    for (int axis = x.has_samples ? 1 : 0; axis < static_cast<int>(x.rank()); ++axis) found.push_back(axis);
    return found;
  }
  for (const std::int64_t number : whole_numbers("axis")) found.push_back(not_samples(x, axis_below(x.rank(), number)));
  std::sort(found.begin(), found.end());
  if (std::adjacent_find(found.begin(), found.end()) != found.end()) fail("an axis is named twice");
  return found;
}

ExpressionOperand reduce(const Call& call, ReduceKind kind, bool mean) {
  const ExpressionOperand& x = call.tensor("x");
  const std::vector<int> axes = call.axes(x);
  double count = 1;
  for (const int axis : axes) count *= static_cast<double>(x.shape[axis]);
  return call.builder.reduced(x, kind, axes, call.flag("keepdims"), mean ? 1 / count : 1, call.column);
}

// e^(x - the largest value along the axis), the sum of these, and the largest value.
struct Exponentials {
  ExpressionOperand values, sum, largest;
};
Exponentials exponentials(const Call& call, const ExpressionOperand& x, const std::vector<int>& axes) {
  ExpressionBuilder& builder = call.builder;
  const auto apply = [&](ScalarFunction function, const std::vector<ExpressionOperand>& of) {
    return builder.apply(function, of, call.column);
  };
  const ExpressionOperand from = builder.stored(x);
  const ExpressionOperand largest =
      apply(ScalarFunction::stop_gradient, {builder.reduced(from, ReduceKind::maximum, axes, true, 1, call.column)});
  const ExpressionOperand values =
      builder.stored(apply(ScalarFunction::exp, {apply(ScalarFunction::subtract, {from, largest})}));
  return {values, builder.reduced(values, ReduceKind::sum, axes, true, 1, call.column), largest};
}

ExpressionOperand softmax(const Call& call) {
  const ExpressionOperand& x = call.tensor("x");
  const std::vector<int> axes = call.axes(x);
  if (axes == std::vector{static_cast<int>(x.rank()) - 1}) {
    return call.builder.op(std::make_shared<Softmax>(), {x}, call.column);
  }
  const Exponentials of = exponentials(call, x, axes);
  return call.builder.apply(ScalarFunction::divide, {of.values, of.sum}, call.column);
}

ExpressionOperand logsumexp(const Call& call) {
  const ExpressionOperand& x = call.tensor("x");
  const std::vector<int> axes = call.axes(x);
  const Exponentials of = exponentials(call, x, axes);
  const ExpressionOperand sum = call.builder.apply(ScalarFunction::log, {of.sum}, call.column);
  const ExpressionOperand whole = call.builder.apply(ScalarFunction::add, {sum, of.largest}, call.column);
  if (call.flag("keepdims")) return whole;
  std::vector<std::int64_t> sizes;
  for (int axis = 0; axis < static_cast<int>(x.rank()); ++axis) {
    if (!std::binary_search(axes.begin(), axes.end(), axis)) sizes.push_back(x.shape[axis]);
  }
  return call.builder.reshaped(whole, Shape(std::move(sizes)));
}

ExpressionOperand transpose(const Call& call) {
  const ExpressionOperand& x = call.tensor("x");
  if (!x.has_samples) call.fail("a weight is not transposed; declare it with the other order of dimensions");
  std::vector<std::int64_t> order;
  if (call.of("axes").kind == ExpressionOperand::Kind::none) {
    for (std::int64_t axis = x.rank(); axis-- > 0;) order.push_back(axis);
  } else {
    for (const std::int64_t axis : call.whole_numbers("axes")) order.push_back(call.axis_below(x.rank(), axis));
  }
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    if (sorted[k] != static_cast<std::int64_t>(k)) call.fail("axes must name each dimension once");
  }
  if (std::ssize(order) != x.rank()) call.fail(format("axes must name the {} dimensions", x.rank()));
  if (order.empty() || order[0] != 0) call.fail("dimension 0, that of the samples, must stay first");
  return call.builder.op(std::make_shared<Permute>(std::move(order)), {x}, call.column);
}

ExpressionOperand reshape(const Call& call) {
  const ExpressionOperand& x = call.tensor("x");
  std::vector<std::int64_t> sizes = call.whole_numbers("newshape");
  if (x.has_samples) {
    if (sizes.empty() || sizes[0] != -1) call.fail("newshape must begin with -1, the number of samples");
    sizes[0] = x.shape[0];
  }
  std::int64_t known = 1, open = 0;
  for (const std::int64_t size : sizes) {
    if (size < -1 || size == 0) call.fail(format("{} is not the size of a dimension", size));
    size < 0 ? ++open : known = checked_multiply(known, size);
  }
  if (open > 1) call.fail("only one size may be -1, besides that of the samples");
  for (std::int64_t& size : sizes) {
    if (size < 0) size = x.shape.count() / known;
  }
  const Shape shape(std::move(sizes));
  if (shape.count() != x.shape.count()) call.fail(format("{} has another number of values", shape_text(x)));
  return call.builder.reshaped(x, shape);
}

ExpressionOperand expand_dims(const Call& call) {
  const ExpressionOperand& x = call.tensor("x");
  const int axis = call.axis_below(x.rank() + 1, call.whole(call.of("axis"), "axis"));
  std::vector<std::int64_t> sizes = x.shape.sizes();
  sizes.insert(sizes.begin() + call.not_samples(x, axis), 1);
  return call.builder.reshaped(x, Shape(std::move(sizes)));
}

ExpressionOperand squeeze(const Call& call) {
  const ExpressionOperand& x = call.tensor("x");
  const int axis = call.axis(x);
  if (x.shape[axis] != 1) call.fail(format("dimension {} of {} is not 1", axis, shape_text(x)));
  std::vector<std::int64_t> sizes = x.shape.sizes();
  sizes.erase(sizes.begin() + axis);
  return call.builder.reshaped(x, Shape(std::move(sizes)));
}

// The sizes of x before, along and after an axis, with the samples as the first dimension.
Shape around(const ExpressionOperand& x, int axis) {
  Shape shape{x.shape[0], 1, x.shape[axis], 1};
  for (int k = 1; k < axis; ++k) shape[1] *= x.shape[k];
  for (int k = axis + 1; k < static_cast<int>(x.rank()); ++k) shape[3] *= x.shape[k];
  return shape;
}

// The op joins tensors along the last dimension only. Therefore the axis and those after it become one dimension.
ExpressionOperand concatenate(const Call& call) {
  const ExpressionOperand& list = call.of("xs");
  if (list.kind != ExpressionOperand::Kind::list || list.items.empty()) call.fail("xs must be a list of tensors");
  const ExpressionOperand& first = list.items[0];
  if (!first.is_tensor()) call.fail("xs must be a list of tensors");
  const int axis = call.axis(first);
  std::vector<ExpressionOperand> joined;
  Shape shape = first.shape;
  shape[axis] = 0;
  for (const ExpressionOperand& x : list.items) {
    bool fits = x.is_tensor() && x.rank() == first.rank() && x.has_samples;
    for (int k = 0; fits && k < static_cast<int>(x.rank()); ++k) fits = k == axis || x.shape[k] == first.shape[k];
    if (!fits) {
      call.fail(format("all items need samples and the dimensions of {}, except for axis {}", shape_text(first), axis));
    }
    shape[axis] += x.shape[axis];
    const Shape of = around(x, axis);
    joined.push_back(call.builder.reshaped(x, {of[0] * of[1], of[2] * of[3]}));
  }
  if (joined.size() == 1) return first;
  return call.builder.reshaped(call.builder.op(std::make_shared<Concatenate>(), joined, call.column), shape);
}

// The square root with gradient 0 at 0.
constexpr const char* root_of_sum = "where(s == 0, 0, sqrt(where(s == 0, 1, s)))";

ExpressionOperand norm(const Call& call) {
  const ExpressionOperand& order = call.of("ord");
  if (order.kind != ExpressionOperand::Kind::none && order.number != 2)
    call.fail("ord must be None or 2, the Euclidean norm");
  const std::map<std::string, ExpressionOperand> arguments = {
      {"x", call.tensor("x")}, {"axis", call.of("axis")}, {"keepdims", call.of("keepdims")}};
  const ExpressionOperand sum = call.builder.evaluate(parse_expression("sum(x * x, axis, keepdims)"), arguments);
  return call.builder.evaluate(parse_expression(root_of_sum), {{"s", sum}});
}

ExpressionOperand normalize(const Call& call) {
  if (call.of("order").number != 2) call.fail("order must be 2, the Euclidean norm");
  return call.builder.evaluate(parse_expression("x * rsqrt(maximum(sum(x * x, axis, True), epsilon * epsilon))"),
                               call.arguments);
}

ExpressionOperand standard_deviation(const Call& call) {
  const ExpressionOperand variance = call.builder.evaluate(parse_expression("var(x, axis, keepdims)"), call.arguments);
  return call.builder.evaluate(parse_expression(root_of_sum), {{"s", variance}});
}

ExpressionOperand matmul(const Call& call) {
  const ExpressionOperand &x = call.tensor("x1"), &y = call.tensor("x2");
  if (!x.has_samples || y.has_samples || y.rank() != 2 || x.rank() < 2) {
    call.fail("x1 must have samples and x2 must be a weight of two dimensions");
  }
  if (y.weight == no_tensor) call.fail("x2 must be a weight itself, not a value that is computed from weights");
  if (x.shape.back() != y.shape[0]) call.fail(format("{} and {} do not fit", shape_text(x), shape_text(y)));
  return call.builder.product(x, y, call.column);
}

struct Function {
  const char* name;
  const char* parameters;  // with their defaults
  ExpressionOperand (*build)(const Call& call);
};

constexpr Function functions[] = {
    {"sum", "x axis=None keepdims=False", [](const Call& call) { return reduce(call, ReduceKind::sum, false); }},
    {"mean", "x axis=None keepdims=False", [](const Call& call) { return reduce(call, ReduceKind::sum, true); }},
    {"max", "x axis=None keepdims=False", [](const Call& call) { return reduce(call, ReduceKind::maximum, false); }},
    {"min", "x axis=None keepdims=False", [](const Call& call) { return reduce(call, ReduceKind::minimum, false); }},
    {"softmax", "x axis=-1", softmax},
    {"logsumexp", "x axis=None keepdims=False", logsumexp},
    {"transpose", "x axes=None", transpose},
    {"reshape", "x newshape", reshape},
    {"expand_dims", "x axis", expand_dims},
    {"squeeze", "x axis", squeeze},
    {"concatenate", "xs axis=0", concatenate},
    {"matmul", "x1 x2", matmul},
    {"norm", "x ord=None axis=None keepdims=False", norm},
    {"normalize", "x axis=-1 order=2 epsilon=1e-7", normalize},
    {"std", "x axis=None keepdims=False", standard_deviation},
};

// Functions that are expressions of others.
struct Composite {
  const char *name, *parameters, *expression;
};

constexpr Composite composites[] = {
    {"greater", "x1 x2", "x2 < x1"},
    {"greater_equal", "x1 x2", "x2 <= x1"},
    {"square", "x", "x * x"},
    {"log2", "x", "log(x) * 1.4426950408889634"},
    {"log10", "x", "log(x) * 0.4342944819032518"},
    {"sinh", "x", "(exp(x) - exp(-x)) * 0.5"},
    {"cosh", "x", "(exp(x) + exp(-x)) * 0.5"},
    {"clip", "x x_min x_max", "minimum(maximum(x, x_min), x_max)"},
    {"hypot", "x1 x2", "sqrt(x1 * x1 + x2 * x2)"},
    {"logaddexp", "x1 x2", "x1 + softplus(x2 - x1)"},
    {"relu", "x", "maximum(0, x)"},
    {"relu6", "x", "minimum(maximum(0, x), 6)"},
    {"leaky_relu", "x negative_slope=0.2", "maximum(0, x) + negative_slope * minimum(x, 0)"},
    {"elu", "x alpha=1.0", "maximum(0, x) + alpha * expm1(minimum(x, 0))"},
    {"selu", "x", "1.0507009873554805 * (maximum(0, x) + 1.6732632423543772 * expm1(minimum(x, 0)))"},
    {"silu", "x", "x * sigmoid(x)"},
    {"gelu", "x approximate=True",
     "where(approximate, x * sigmoid(1.5957691216057308 * (x + 0.044715 * x ** 3)), "
     "0.5 * x * (1 + erf(x * 0.7071067811865476)))"},
    {"mish", "x", "x * tanh(softplus(x))"},
    {"softsign", "x", "x / (1 + abs(x))"},
    {"log_sigmoid", "x", "-softplus(-x)"},
    {"hard_sigmoid", "x", "relu6(x + 3) / 6"},
    {"hard_silu", "x", "x * relu6(x + 3) / 6"},
    {"hard_tanh", "x", "clip(x, -1, 1)"},
    {"log_softmax", "x axis=-1", "x - logsumexp(x, axis, True)"},
    {"var", "x axis=None keepdims=False", "mean(square(x - mean(x, axis, True)), axis, keepdims)"},
    {"l2_normalize", "x axis=-1 epsilon=1e-12", "x * rsqrt(maximum(sum(x * x, axis, True), epsilon))"},
    {"zeros_like", "x", "0"},
    {"ones_like", "x", "1"},
};

// Other names in Keras and NumPy.
constexpr struct {
  std::string_view name, meaning;
} aliases[] = {{"absolute", "abs"},   {"swish", "silu"},         {"hard_swish", "hard_silu"},
               {"pow", "power"},      {"true_divide", "divide"}, {"amax", "max"},
               {"amin", "min"},       {"reduce_sum", "sum"},     {"reduce_mean", "mean"},
               {"reduce_max", "max"}, {"reduce_min", "min"}};

constexpr std::string_view modules[] = {"ops",     "keras.ops", "np", "numpy", "tf",
                                        "tf.math", "tf.nn",     "K",  "torch", "jnp"};

// The name of the function that an expression calls, without its module and without an alias.
std::string function_name(const Expression& call) {
  std::string_view name = call.text;
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos) {
    const std::string_view before = name.substr(0, dot);
    name.remove_prefix(dot + 1);
    if (std::find(std::begin(modules), std::end(modules), before) == std::end(modules)) {
      throw ExpressionError(call.column, format("tensors have no methods; write {}({}, ...)", name, before));
    }
  }
  for (const auto& of : aliases) {
    if (of.name == name) return std::string(of.meaning);
  }
  return std::string(name);
}

template <class T, std::size_t n>
const T* find_by_name(const T (&table)[n], std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(table), std::end(table), [&](const T& of) { return of.name == name; });
  return found == std::end(table) ? nullptr : found;
}

constexpr const char* operand_names[] = {"x", "x1 x2", "condition x1 x2"};

}  // namespace

ExpressionOperand call_function(ExpressionBuilder& builder, const Expression& expression) {
  const std::string name = function_name(expression);
  if (const auto function = scalar_function(name)) {
    const int count = operands_of(*function);
    const Call call(builder, expression, name, operand_names[count - 1]);
    std::vector<ExpressionOperand> operands;
    for (const Parameter& of : parameters_of(operand_names[count - 1])) operands.push_back(call.of(of.name));
    return builder.apply(*function, operands, expression.column);
  }
  if (const Function* of = find_by_name(functions, name)) {
    return of->build(Call(builder, expression, name, of->parameters));
  }
  if (const Composite* of = find_by_name(composites, name)) {
    const Call call(builder, expression, name, of->parameters);
    try {
      return builder.evaluate(parse_expression(of->expression), call.arguments);
    } catch (const ExpressionError& error) {
      call.fail(error.what());
    }
  }
  throw ExpressionError(expression.column, format("there is no function '{}'{}", expression.text,
                                                  suggestion(name, expression_functions())));
}

std::vector<std::string> expression_functions() {
  std::vector<std::string> names;
  for (const Function& of : functions) names.emplace_back(of.name);
  for (const Composite& of : composites) names.emplace_back(of.name);
  for (auto f = static_cast<int>(ScalarFunction::negative); f <= static_cast<int>(ScalarFunction::where); ++f) {
    names.emplace_back(name_of(static_cast<ScalarFunction>(f)));
  }
  std::sort(names.begin(), names.end());
  return names;
}

ExpressionOperand sliced(ExpressionBuilder& builder, const ExpressionOperand& x, int axis, const Subscript& subscript) {
  const bool is_whole =
      subscript.kind == Subscript::Kind::slice && !subscript.begin && !subscript.end && !subscript.step;
  if (is_whole) return x;
  if (axis == 0 && x.has_samples) {
    throw ExpressionError(subscript.column, "dimension 0 is that of the samples, which must stay whole; write ':'");
  }
  const std::int64_t size = x.shape[axis];
  const auto counted = [&](std::int64_t number) { return number < 0 ? number + size : number; };
  std::int64_t begin = 0, end = size;
  if (subscript.kind == Subscript::Kind::element) {
    begin = counted(*subscript.begin);
    end = begin + 1;
    if (begin < 0 || begin >= size) {
      throw ExpressionError(subscript.column,
                            format("{} is not an index of a dimension of {}", *subscript.begin, size));
    }
  } else {
    if (subscript.step.value_or(1) != 1) throw ExpressionError(subscript.column, "the step of a slice must be 1");
    begin = std::clamp<std::int64_t>(counted(subscript.begin.value_or(0)), 0, size);
    end = std::clamp<std::int64_t>(counted(subscript.end.value_or(size)), 0, size);
    if (begin >= end) throw ExpressionError(subscript.column, "the slice is empty");
    if (begin == 0 && end == size) return x;
  }
  if (!x.has_samples) throw ExpressionError(subscript.column, "a weight has no slices; declare it smaller");
  const ExpressionOperand image = builder.reshaped(x, around(x, axis));
  const Borders others{{0, begin}, {0, size - end}};
  Shape shape = x.shape;
  shape[axis] = end - begin;
  return builder.reshaped(builder.op(std::make_shared<Crop2d>(others), {image}, x.column), shape);
}

}  // namespace trainctl
