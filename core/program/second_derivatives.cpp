// Finds the ops that would need second derivatives.
#include "core/program/second_derivatives.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/base/format.h"
#include "core/layers/expression/functions.h"

namespace trainctl {
namespace {

// The kinds of the ops through which tensor y depends on tensor x, each once, in the order of the graph. Empty if y
// does not depend on x.
std::vector<std::string> ops_between(const Graph& graph, TensorId x, TensorId y) {
  const auto has_any = [](const std::vector<TensorId>& list, const std::set<TensorId>& of) {
    return std::ranges::any_of(list, [&](TensorId id) { return of.contains(id); });
  };
  std::set<TensorId> after{x}, before{y};
  for (const Op& op : graph.ops) {
    if (has_any(op.inputs, after)) after.insert(op.outputs.begin(), op.outputs.end());
  }
  std::vector<std::string> kinds;
  for (auto op = graph.ops.rbegin(); op != graph.ops.rend(); ++op) {
    if (!has_any(op->outputs, before)) continue;
    before.insert(op->inputs.begin(), op->inputs.end());
    if (has_any(op->inputs, after)) kinds.emplace_back(op->def->kind());
  }
  std::ranges::reverse(kinds);
  std::set<std::string> found;
  std::erase_if(kinds, [&](const std::string& kind) { return !found.insert(kind).second; });
  return kinds;
}

// Throws the error about a call of gradient(), unless its arguments are no tensors of the graph.
void refuse_gradient(const Expression& call, const Graph& graph, const std::map<std::string, TensorId>& values) {
  if (call.operands.size() < 2) return;
  const auto is_name = [](const Expression& operand) { return operand.kind == Expression::Kind::name; };
  if (!is_name(call.operands[0]) || !is_name(call.operands[1])) return;
  const std::string &y = call.operands[0].text, &x = call.operands[1].text;
  const auto of_y = values.find(y), of_x = values.find(x);
  if (of_y == values.end() || of_x == values.end()) return;
  const std::string name = function_name(call);
  if (of_x->second == of_y->second) {
    throw ExpressionError(call.column,
                          format("{}(): '{}' and '{}' are the same value, so that its gradient is 1", name, y, x));
  }
  const std::vector<std::string> kinds = ops_between(graph, of_x->second, of_y->second);
  if (kinds.empty()) {
    throw ExpressionError(call.column,
                          format("{}(): '{}' does not depend on '{}', so that its gradient is 0", name, y, x));
  }
  std::string ops;
  for (const std::string& kind : kinds) ops += (ops.empty() ? "" : ", ") + kind;
  throw ExpressionError(
      call.column,
      gradient_refusal(
          name, format("the ops through which '{}' depends on '{}' have no second derivatives ({})", y, x, ops)));
}

}  // namespace

void refuse_gradients(const Expression& expression, const Graph& graph, const std::map<std::string, TensorId>& values) {
  if (expression.kind == Expression::Kind::call && is_gradient(function_name(expression))) {
    refuse_gradient(expression, graph, values);
  }
  for (const Expression& operand : expression.operands) refuse_gradients(operand, graph, values);
  for (const Expression::Keyword& keyword : expression.keywords) refuse_gradients(keyword.value, graph, values);
}

}  // namespace trainctl
