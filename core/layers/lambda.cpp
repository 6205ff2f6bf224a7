// lambda: computes an expression of its inputs and of weights of its own.
#include <algorithm>
#include <map>

#include "core/base/format.h"
#include "core/layers/expression/layer_expression.h"
#include "core/layers/initializers.h"
#include "core/layers/regularizers.h"
#include "core/layers/table.h"
#include "core/spec/one_or_more.h"

namespace trainctl {
namespace {

struct LambdaWeight {
  std::vector<std::int64_t> shape;
  InitializerChoice initializer{"glorot_uniform"};
  RegularizerChoice regularizer;

  static Keys<LambdaWeight> keys() {
    return Keys<LambdaWeight>("weight", "A weight of an expression.")
        .required("shape", &LambdaWeight::shape, "Sizes of its dimensions, without the samples; [] for one number.",
                  between(1, max_channels))
        .key("initializer", &LambdaWeight::initializer, "Initial values.")
        .key("regularizer", &LambdaWeight::regularizer, "A penalty on the weight.");
  }
};

struct LambdaOptions final : LayerOptions {
  OneOrMore<Reference> from;
  Located<std::string> expression;
  OneOrMore<std::string> inputs{{"x"}};
  std::map<std::string, LambdaWeight> weights;

  std::vector<Reference> references() const override { return from.items; }

  Feature expand(Layer& layer, const std::vector<Feature>& features) const override {
    ExpressionScope scope = scope_of(layer);
    for (std::size_t i = 0; i < features.size(); ++i) scope.tensors[inputs.items[i]] = {features[i].tensor, true};
    for (const auto& [name, weight] : weights) {
      const Shape shape(weight.shape);
      const TensorId tensor = layer.parameter(name, shape, make_initializer(weight.initializer, shape),
                                              shape.rank() > 1, penalty_of(weight.regularizer));
      scope.tensors[name] = {tensor, false};
    }
    try {
      ExpressionBuilder builder(scope);
      const ExpressionOperand result = builder.evaluate(parse_expression(expression.value));
      if (!result.is_tensor() || !result.has_samples || result.rank() < 2) {
        return layer.error(format("the expression has the value {}, which is not one row or more for each sample",
                                  result.is_tensor() ? shape_text(result) : "of a number"),
                           features[0]);
      }
      return layer.output(builder.tensor(result));
    } catch (const ExpressionError& error) {
      return layer.error(error.in_words(), features[0]);
    }
  }
};

void check_lambda(const LambdaOptions& options, const Node& node, Reader& reader) {
  check_input_names(options.inputs.items, std::max<std::size_t>(1, options.from.items.size()), node, reader);
  for (const auto& [name, weight] : options.weights) {
    for (const std::string& input : options.inputs.items) {
      if (input == name) reader.error(node.find("weights")->location, format("'{}' is also an input", name));
    }
  }
}

}  // namespace

Section lambda() {
  using O = LambdaOptions;
  return named_layer_keys<O>("lambda",
                             "Computes an expression, like Keras' Lambda, but also with weights. Operators and slices "
                             "are those of Python, functions and their arguments those of keras.ops; dimension 0 is "
                             "that of the samples.")
      .required("expression", &O::expression, "For example: x * sigmoid(beta * x).")
      .key("from", &O::from, "The layers whose outputs are the inputs; absent: the previous layer.")
      .key("inputs", &O::inputs, "The names of the inputs in the expression, in the order of `from`.")
      .key("weights", &O::weights, "Weights by their names in the expression.")
      .shorthand("expression")
      .check(check_lambda);
}

}  // namespace trainctl
