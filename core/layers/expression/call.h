// A call of a function in an expression, and the functions that are not expressions of others.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/layers/expression/builder.h"

namespace trainctl::expression {

// A parameter and the text of its default, such as "axis=None".
struct Parameter {
  std::string name, value;
};

// The parameters of a text such as "x axis=None keepdims=False".
std::vector<Parameter> parameters_of(std::string_view text);

// A call of a function, with its arguments by the names of the parameters.
class FunctionCall {
 public:
  FunctionCall(ExpressionBuilder& builder, const Expression& call, const std::string& function,
               std::string_view parameters);

  ExpressionBuilder& builder;
  int column;
  std::string function;
  std::map<std::string, ExpressionOperand> arguments;  // of all parameters

  [[noreturn]] void fail(const std::string& message) const {
    throw ExpressionError(column, format("{}(): {}", function, message));
  }
  // The value of another expression, whose mistakes are reported at this call.
  ExpressionOperand evaluate(std::string_view text, const std::map<std::string, ExpressionOperand>& names) const {
    try {
      return builder.evaluate(parse_expression(text), names);
    } catch (const ExpressionError& error) {
      fail(error.what());
    }
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
  // `may_have_samples`: whether the list may begin with the number of samples, which is -1.
  std::vector<std::int64_t> whole_numbers(const std::string& name, bool may_have_samples = false) const {
    const ExpressionOperand& value = of(name);
    if (value.kind != ExpressionOperand::Kind::list) return {whole(value, name)};
    std::vector<std::int64_t> numbers;
    for (const ExpressionOperand& item : value.items) {
      const bool samples = may_have_samples && numbers.empty() && item.kind == ExpressionOperand::Kind::samples;
      numbers.push_back(samples ? -1 : whole(item, name));
    }
    return numbers;
  }
  // A dimension of a tensor with `rank` dimensions, counted from 0.
  int axis_below(std::int64_t rank, std::int64_t number) const {
    if (number < -rank || number >= rank) fail(format("axis {} is not one of {}", number, counted(rank, "dimension")));
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
  // A tensor and one of its dimensions.
  struct AxisOf {
    ExpressionOperand x;
    int axis = 0;
  };
  // The argument x and the dimension that `axis` names. If it names none, a tensor without samples is one dimension.
  AxisOf one_axis() const;
  int not_samples(const ExpressionOperand& x, int axis) const {
    if (axis == 0 && x.has_samples) fail("axis 0 is that of the samples, which do not depend on each other");
    return axis;
  }
};

// Sums and extremes over dimensions, and functions that consist of them (reductions.cpp). `mean`: divides a sum by the
// number of values.
ExpressionOperand reduce(const FunctionCall& call, ReduceKind kind, bool mean);
ExpressionOperand softmax(const FunctionCall& call);
ExpressionOperand logsumexp(const FunctionCall& call);
ExpressionOperand norm(const FunctionCall& call);
ExpressionOperand normalize(const FunctionCall& call);
ExpressionOperand standard_deviation(const FunctionCall& call);
ExpressionOperand cumsum(const FunctionCall& call);

// Numbers of elements along dimensions, and selection by them (positions.cpp).
ExpressionOperand arange(const FunctionCall& call);
ExpressionOperand eye(const FunctionCall& call);
ExpressionOperand one_hot(const FunctionCall& call);
ExpressionOperand argmax(const FunctionCall& call);
ExpressionOperand argmin(const FunctionCall& call);
ExpressionOperand take(const FunctionCall& call);

// Sums of products (products.cpp).
ExpressionOperand einsum(const FunctionCall& call);
ExpressionOperand matmul(const FunctionCall& call);

// Random numbers (random.cpp).
ExpressionOperand random_normal(const FunctionCall& call);
ExpressionOperand random_uniform(const FunctionCall& call);

// The tensor with its dimensions in another order, in which the samples stay first (shapes.cpp).
ExpressionOperand permuted(ExpressionBuilder& builder, const ExpressionOperand& x, std::vector<std::int64_t> order,
                           int column);

// Shapes and their changes (shapes.cpp).
ExpressionOperand shape(const FunctionCall& call);
ExpressionOperand transpose(const FunctionCall& call);
ExpressionOperand reshape(const FunctionCall& call);
ExpressionOperand expand_dims(const FunctionCall& call);
ExpressionOperand squeeze(const FunctionCall& call);
ExpressionOperand concatenate(const FunctionCall& call);
// The sizes of x before, along and after an axis, with the samples as the first dimension, which is 1 for weights.
Shape around(const ExpressionOperand& x, int axis);

// Orders, joins, splits and repetitions (moves.cpp).
ExpressionOperand swapaxes(const FunctionCall& call);
ExpressionOperand moveaxis(const FunctionCall& call);
ExpressionOperand stack(const FunctionCall& call);
ExpressionOperand split(const FunctionCall& call);
ExpressionOperand roll(const FunctionCall& call);
ExpressionOperand flip(const FunctionCall& call);
ExpressionOperand repeat(const FunctionCall& call);
ExpressionOperand tile(const FunctionCall& call);
ExpressionOperand pad(const FunctionCall& call);

}  // namespace trainctl::expression
