// Appends the ops of an expression to a layer.
#include "core/layers/expression/layer_expression.h"

#include <utility>

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

}  // namespace trainctl
