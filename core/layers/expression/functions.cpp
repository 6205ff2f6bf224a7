// The tables of the functions of expressions: those that are expressions of others, and all others.
#include "core/layers/expression/functions.h"

#include <algorithm>

#include "core/layers/expression/call.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace expression {
namespace {

struct Function {
  const char* name;
  const char* parameters;  // with their defaults
  ExpressionOperand (*build)(const FunctionCall& call);
};

constexpr Function functions[] = {
    {"sum", "x axis=None keepdims=False",
     [](const FunctionCall& call) { return reduce(call, ReduceKind::sum, false); }},
    {"mean", "x axis=None keepdims=False",
     [](const FunctionCall& call) { return reduce(call, ReduceKind::sum, true); }},
    {"max", "x axis=None keepdims=False",
     [](const FunctionCall& call) { return reduce(call, ReduceKind::maximum, false); }},
    {"min", "x axis=None keepdims=False",
     [](const FunctionCall& call) { return reduce(call, ReduceKind::minimum, false); }},
    {"cumsum", "x axis=None", cumsum},
    {"argmax", "x axis=None keepdims=False", argmax},
    {"argmin", "x axis=None keepdims=False", argmin},
    {"softmax", "x axis=-1", softmax},
    {"logsumexp", "x axis=None keepdims=False", logsumexp},
    {"transpose", "x axes=None", transpose},
    {"reshape", "x newshape", reshape},
    {"expand_dims", "x axis", expand_dims},
    {"squeeze", "x axis", squeeze},
    {"concatenate", "xs axis=0", concatenate},
    {"stack", "x axis=0", stack},
    {"split", "x indices_or_sections axis=0", split},
    {"swapaxes", "x axis1 axis2", swapaxes},
    {"moveaxis", "x source destination", moveaxis},
    {"roll", "x shift axis", roll},
    {"flip", "x axis=None", flip},
    {"repeat", "x repeats axis", repeat},
    {"tile", "x repeats", tile},
    {"pad", "x pad_width mode='constant' constant_values=0", pad},
    {"take", "x indices axis=None", take},
    {"one_hot", "x num_classes axis=-1", one_hot},
    {"arange", "start stop=None step=1", arange},
    {"eye", "N M=None k=0", eye},
    {"matmul", "x1 x2", matmul},
    {"einsum", "subscripts x1 x2=None", einsum},
    {"shape", "x", shape},
    {"random_normal", "shape mean=0 stddev=1", random_normal},
    {"random_uniform", "shape minval=0 maxval=1", random_uniform},
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
    {"exp2", "x", "2 ** x"},
    {"trunc", "x", "where(x < 0, ceil(x), floor(x))"},
    {"isinf", "x", "~(isfinite(x) | isnan(x))"},
    {"any", "x axis=None keepdims=False", "max(x != 0, axis, keepdims)"},
    {"all", "x axis=None keepdims=False", "min(x != 0, axis, keepdims)"},
    {"count_nonzero", "x axis=None", "sum(x != 0, axis)"},
    {"full_like", "x fill_value", "((x == x) | isnan(x)) * fill_value"},
    {"arcsin", "x", "arctan(x * rsqrt((1 - x) * (1 + x)))"},
    {"arccos", "x", "1.5707963267948966 - arctan(x * rsqrt((1 - x) * (1 + x)))"},
    {"arctanh", "x", "0.5 * (log1p(x) - log1p(-x))"},
    {"arcsinh", "x", "where(x < 0, -1, 1) * log1p(maximum(x, -x) + x * x / (1 + sqrt(1 + x * x)))"},
    {"arccosh", "x", "log(x + sqrt((x - 1) * (x + 1)))"},
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
    {"celu", "x alpha=1.0", "maximum(0, x) + alpha * expm1(minimum(x, 0) / alpha)"},
    {"glu", "x axis=-1", "split(x, 2, axis)[0] * sigmoid(split(x, 2, axis)[1])"},
    {"hard_shrink", "x threshold=0.5", "where(abs(x) > threshold, x, 0)"},
    {"soft_shrink", "x threshold=0.5", "maximum(x - threshold, 0) + minimum(x + threshold, 0)"},
    {"tanh_shrink", "x", "x - tanh(x)"},
    {"threshold", "x threshold default_value", "where(x > threshold, x, default_value)"},
    {"squareplus", "x b=4", "0.5 * (x + sqrt(x * x + b))"},
    {"sparse_plus", "x", "where(x <= -1, 0, where(x < 1, 0.25 * (x + 1) ** 2, x))"},
    {"sparse_sigmoid", "x", "clip(0.5 * (x + 1), 0, 1)"},
    {"log_softmax", "x axis=-1", "x - logsumexp(x, axis, True)"},
    {"var", "x axis=None keepdims=False", "mean(square(x - mean(x, axis, True)), axis, keepdims)"},
    {"l2_normalize", "x axis=-1 epsilon=1e-12", "x * rsqrt(maximum(sum(x * x, axis, True), epsilon))"},
    {"zeros_like", "x", "full_like(x, 0)"},
    {"ones_like", "x", "full_like(x, 1)"},
};

// Other names in Keras and NumPy.
constexpr struct {
  std::string_view name, meaning;
} aliases[] = {{"absolute", "abs"},   {"swish", "silu"},         {"hard_swish", "hard_silu"},
               {"pow", "power"},      {"true_divide", "divide"}, {"amax", "max"},
               {"amin", "min"},       {"reduce_sum", "sum"},     {"reduce_mean", "mean"},
               {"reduce_max", "max"}, {"reduce_min", "min"}};

constexpr std::string_view modules[] = {"ops", "keras.ops", "np",  "numpy",  "tf",           "tf.math",  "tf.nn",
                                        "K",   "torch",     "jnp", "random", "keras.random", "tf.random"};

template <class T, std::size_t n>
const T* find_by_name(const T (&table)[n], std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(table), std::end(table), [&](const T& of) { return of.name == name; });
  return found == std::end(table) ? nullptr : found;
}

// What other libraries call the gradient of one value with respect to another one.
constexpr std::string_view gradient_names[] = {"gradient", "gradients", "grad", "GradientTape"};

constexpr const char* operand_names[] = {"x", "x1 x2", "condition x1 x2"};

}  // namespace
}  // namespace expression

std::string function_name(const Expression& call) {
  std::string_view name = call.text;
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos) {
    const std::string_view before = name.substr(0, dot);
    name.remove_prefix(dot + 1);
    if (std::find(std::begin(expression::modules), std::end(expression::modules), before) ==
        std::end(expression::modules)) {
      throw ExpressionError(call.column, format("tensors have no methods; write {}({}, ...)", name, before));
    }
  }
  if (name == "normal" || name == "uniform") return "random_" + std::string(name);
  for (const auto& of : expression::aliases) {
    if (of.name == name) return std::string(of.meaning);
  }
  return std::string(name);
}

ExpressionOperand call_function(ExpressionBuilder& builder, const Expression& call) {
  using namespace trainctl::expression;
  const std::string name = function_name(call);
  if (const auto function = scalar_function(name)) {
    const int count = operands_of(*function);
    const FunctionCall made(builder, call, name, operand_names[count - 1]);
    std::vector<ExpressionOperand> operands;
    for (const Parameter& of : parameters_of(operand_names[count - 1])) operands.push_back(made.of(of.name));
    return builder.apply(*function, operands, call.column);
  }
  if (const Function* of = find_by_name(functions, name)) {
    return of->build(FunctionCall(builder, call, name, of->parameters));
  }
  if (const Composite* of = find_by_name(composites, name)) {
    const FunctionCall made(builder, call, name, of->parameters);
    return made.evaluate(of->expression, made.arguments);
  }
  if (is_gradient(name)) {
    throw ExpressionError(call.column, gradient_refusal(name,
                                                        "no op (dense, conv2d, elementwise, ...) has second "
                                                        "derivatives"));
  }
  throw ExpressionError(call.column,
                        format("there is no function '{}'{}", call.text, suggestion(name, expression_functions())));
}

bool is_gradient(std::string_view function) {
  using expression::gradient_names;
  return std::find(std::begin(gradient_names), std::end(gradient_names), function) != std::end(gradient_names);
}

std::string gradient_refusal(std::string_view function, std::string_view reason) {
  return format(
      "there is no function '{}', since its result would have to be differentiated again: {}. Instead of the "
      "gradient penalty of WGAN-GP, bound the slopes of the critic by the layer spectral_normalization",
      function, reason);
}

std::vector<std::string> expression_functions() {
  std::vector<std::string> names;
  for (const expression::Function& of : expression::functions) names.emplace_back(of.name);
  for (const expression::Composite& of : expression::composites) names.emplace_back(of.name);
  for (auto f = static_cast<int>(ScalarFunction::negative); f <= static_cast<int>(ScalarFunction::where); ++f) {
    names.emplace_back(name_of(static_cast<ScalarFunction>(f)));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace trainctl
