// Functions of expressions that sum over dimensions or find their extremes.
#include <algorithm>

#include "core/graph/ops/cumsum.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/layers/expression/call.h"

namespace trainctl::expression {
namespace {

// e^(x - the largest value along the axis), the sum of these, and the largest value.
struct Exponentials {
  ExpressionOperand values, sum, largest;
};
Exponentials exponentials(const FunctionCall& call, const ExpressionOperand& x, const std::vector<int>& axes) {
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

// The square root with gradient 0 at 0.
constexpr const char* root_of_sum = "where(s == 0, 0, sqrt(where(s == 0, 1, s)))";

}  // namespace

ExpressionOperand reduce(const FunctionCall& call, ReduceKind kind, bool mean) {
  const ExpressionOperand& x = call.tensor("x");
  const std::vector<int> axes = call.axes(x);
  double count = 1;
  for (const int axis : axes) count *= static_cast<double>(x.shape[axis]);
  return call.builder.reduced(x, kind, axes, call.flag("keepdims"), mean ? 1 / count : 1, call.column);
}

ExpressionOperand softmax(const FunctionCall& call) {
  const ExpressionOperand& x = call.tensor("x");
  const std::vector<int> axes = call.axes(x);
  if (axes == std::vector{static_cast<int>(x.rank()) - 1}) {
    return call.builder.op(std::make_shared<Softmax>(), {x}, call.column);
  }
  const Exponentials of = exponentials(call, x, axes);
  return call.builder.apply(ScalarFunction::divide, {of.values, of.sum}, call.column);
}

ExpressionOperand cumsum(const FunctionCall& call) {
  const FunctionCall::AxisOf of = call.one_axis();
  return call.builder.op(std::make_shared<CumulativeSum>(of.axis, false), {of.x}, call.column);
}

ExpressionOperand logsumexp(const FunctionCall& call) {
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

ExpressionOperand norm(const FunctionCall& call) {
  const ExpressionOperand& order = call.of("ord");
  if (order.kind != ExpressionOperand::Kind::none && order.number != 2)
    call.fail("ord must be None or 2, the Euclidean norm");
  const std::map<std::string, ExpressionOperand> arguments = {
      {"x", call.tensor("x")}, {"axis", call.of("axis")}, {"keepdims", call.of("keepdims")}};
  const ExpressionOperand sum = call.evaluate("sum(x * x, axis, keepdims)", arguments);
  return call.evaluate(root_of_sum, {{"s", sum}});
}

ExpressionOperand normalize(const FunctionCall& call) {
  if (call.of("order").number != 2) call.fail("order must be 2, the Euclidean norm");
  return call.evaluate("x * rsqrt(maximum(sum(x * x, axis, True), epsilon * epsilon))", call.arguments);
}

ExpressionOperand standard_deviation(const FunctionCall& call) {
  const ExpressionOperand variance = call.evaluate("var(x, axis, keepdims)", call.arguments);
  return call.evaluate(root_of_sum, {{"s", variance}});
}

}  // namespace trainctl::expression
