// Appends the ops of an expression to a layer, and checks the names of its inputs.
#include "core/layers/expression/layer_expression.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"

namespace trainctl {

ExpressionScope scope_of(Layer& layer) {
  ExpressionScope scope;
  scope.dtype = layer.compute();
  scope.append = [&layer](std::shared_ptr<const OpDef> def, std::vector<TensorId> of) {
    return layer.op(std::move(def), std::move(of))[0];
  };
  scope.type_of = [&layer](TensorId tensor) { return layer.type(layer.output(tensor)); };
  scope.samples_and_step = [&layer] { return layer.dropout_inputs(); };
  scope.seed = layer.seed();
  scope.path = layer.path();
  return scope;
}

TensorId value_of(Layer& layer, std::string_view text, const std::map<std::string, TensorId>& tensors) {
  ExpressionScope scope = scope_of(layer);
  for (const auto& [name, tensor] : tensors) scope.tensors[name] = {tensor, true};
  ExpressionBuilder builder(scope);
  return builder.tensor(builder.evaluate(parse_expression(text)));
}

Feature expand_expression(Layer& layer, const Feature& input, std::string_view text,
                          const std::map<std::string, double>& numbers) {
  ExpressionScope scope = scope_of(layer);
  scope.tensors["x"] = {input.tensor, true};
  ExpressionBuilder builder(scope);
  std::map<std::string, ExpressionOperand> names{{"x", builder.evaluate(parse_expression("x"))}};
  for (const auto& [name, value] : numbers) names[name] = builder.number(value, 0);
  return layer.output(builder.tensor(builder.evaluate(parse_expression(text), names)));
}

void check_input_names(std::vector<std::string> names, std::size_t given, const Node& node, Reader& reader) {
  const Node* inputs = node.find("inputs");
  const SourceLocation& location = inputs != nullptr ? inputs->location : node.location;
  if (names.size() != given) {
    reader.error(location, format("`inputs` must name the {} of the expression, in the order of `from`",
                                  given == 1 ? std::string("input") : format("{} inputs", given)));
  }
  std::sort(names.begin(), names.end());
  if (std::adjacent_find(names.begin(), names.end()) != names.end()) {
    reader.error(location, "two inputs have the same name");
  }
}

}  // namespace trainctl
