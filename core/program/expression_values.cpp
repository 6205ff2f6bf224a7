// Expands expressions of targets and predictions into ops of the graph.
#include "core/program/expression_values.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/one_hot.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/expression/builder.h"
#include "core/layers/expression/functions.h"
#include "core/metrics/output_expression.h"
#include "core/metrics/targets.h"
#include "core/program/second_derivatives.h"

namespace trainctl {
namespace {

bool is_call(const Expression& expression, std::string_view function) {
  return expression.kind == Expression::Kind::call && function_name(expression) == function;
}

// mean(x): the mean of all values of the batch.
bool is_batch_mean(const Expression& expression) {
  return is_call(expression, "mean") && expression.operands.size() == 1 && expression.keywords.empty();
}

// Whether the expression is a sum of terms of which one is a mean over the batch, possibly times numbers.
bool has_batch_mean(const Expression& expression) {
  if (is_batch_mean(expression)) return true;
  const bool is_sum = is_call(expression, "add") || is_call(expression, "subtract") ||
                      is_call(expression, "multiply") || is_call(expression, "divide") ||
                      is_call(expression, "negative");
  return is_sum && std::ranges::any_of(expression.operands, has_batch_mean);
}

// Computes the mean of the values of each sample or, if positions have weights, of each position. The mean of these is
// the value of the batch.
class MeanValues {
 public:
  // `weighted`: the dimensions of the weights.
  MeanValues(ExpressionBuilder& builder, Shape weighted) : builder_(builder), weighted_(std::move(weighted)) {}

  ExpressionOperand of(const Expression& expression) {
    if (is_batch_mean(expression)) return average(builder_.evaluate(expression.operands[0]));
    if (!has_batch_mean(expression)) return average(builder_.evaluate(expression));
    std::vector<ExpressionOperand> operands;
    for (const Expression& operand : expression.operands) operands.push_back(of(operand));
    const ScalarFunction function = *scalar_function(function_name(expression));
    if (function == ScalarFunction::multiply && has_batch_mean(expression.operands[0])) {
      need_number(expression.operands[1], operands[1]);
    } else if (function == ScalarFunction::multiply) {
      need_number(expression.operands[0], operands[0]);
    } else if (function == ScalarFunction::divide) {
      need_number(expression.operands[1], operands[1]);
    }
    return builder_.apply(function, operands, expression.column);
  }

 private:
  static void need_number(const Expression& expression, const ExpressionOperand& factor) {
    if (factor.kind == ExpressionOperand::Kind::number && !has_batch_mean(expression)) return;
    throw ExpressionError(expression.column,
                          "the mean over all samples can only be multiplied or divided by a number: the values of "
                          "samples are added up, and samples do not depend on each other");
  }

  ExpressionOperand average(const ExpressionOperand& values) {
    if (values.kind == ExpressionOperand::Kind::number) return values;
    if (!values.is_tensor() || !values.has_samples) {
      throw ExpressionError(values.column, "the expression has no values of samples here");
    }
    std::vector<int> axes;
    double count = 1;
    for (int axis = 0; axis < static_cast<int>(values.rank()); ++axis) {
      if (axis < weighted_.rank()) {
        if (axis >= 1 && values.shape[axis] != weighted_[axis]) fail_positions(values);
        continue;
      }
      axes.push_back(axis);
      count *= static_cast<double>(values.shape[axis]);
    }
    if (values.rank() < weighted_.rank()) fail_positions(values);
    if (axes.empty()) return values;
    return builder_.reduced(values, ReduceKind::sum, axes, false, 1 / count, values.column);
  }

  [[noreturn]] void fail_positions(const ExpressionOperand& values) const {
    throw ExpressionError(values.column, format("the expression has the values {}, but needs one or more for each "
                                                "position of {}, because positions have weights or a mask",
                                                shape_text(values), to_string(weighted_.without_front())));
  }

  ExpressionBuilder& builder_;
  Shape weighted_;
};

// The values of an expression of the whole batch, one for each of its samples. `weights`: a tensor [samples].
ExpressionOperand values_of_batch(ExpressionBuilder& builder, const Expression& expression, TensorId weights,
                                  std::int64_t samples) {
  ExpressionOperand values = builder.evaluate(expression);
  if (!values.is_tensor()) return values;
  if (values.shape.count() == 1) {  // the loss of the batch, which is that of each sample: it gets the weights' shape
    return builder.evaluate(parse_expression("where(weight == 0, value, value)"),
                            {{"value", builder.reshaped(values, {1})}, {"weight", builder.input(weights, false)}});
  }
  if (values.rank() == 0 || values.shape[0] != samples) {
    throw ExpressionError(values.column, format("the loss has the values {}, but needs one or more for each of the {} "
                                                "samples of the batch, or one value",
                                                shape_text(values), samples));
  }
  std::vector<int> axes;
  for (int axis = 1; axis < static_cast<int>(values.rank()); ++axis) axes.push_back(axis);
  if (axes.empty()) return values;
  const double count = static_cast<double>(values.shape.count()) / static_cast<double>(samples);
  return builder.reduced(values, ReduceKind::sum, axes, false, 1 / count, values.column);
}

}  // namespace

TensorId gathered(Graph& graph, TensorId samples, const SampleShares& shares, const std::string& name) {
  if (shares.counts.size() == 1) return samples;
  return graph.add_op(std::make_shared<GatherSamples>(shares), {samples}, name, {})[0];
}

TensorId add_values(Graph& graph, const ExpressionSources& sources) {
  ExpressionScope scope;
  scope.append = [&](std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs) {
    return graph.add_op(std::move(def), std::move(inputs), sources.name, sources.text.location)[0];
  };
  scope.type_of = [&](TensorId tensor) { return graph.tensor(tensor).type; };
  const Shape weighted = graph.tensor(sources.weights).type.shape;
  const bool is_whole = sources.shares != nullptr;
  ExpressionBuilder builder(scope);
  const auto kept = [&](const char* text, const ExpressionOperand& x, TensorId weights) {
    Shape aligned = graph.tensor(weights).type.shape;
    while (aligned.rank() < x.rank()) aligned = aligned.with_appended(1);
    const ExpressionOperand weight = builder.reshaped(builder.input(weights, x.has_samples), aligned);
    return builder.evaluate(parse_expression(text), {{"x", x}, {"weight", weight}});
  };
  const auto whole = [&](TensorId samples) {
    return builder.input(gathered(graph, samples, *sources.shares, sources.name), false);
  };
  for (const auto& [name, tensor] : sources.targets) {
    builder.define(name, is_whole ? whole(tensor) : builder.input(tensor, true));
  }
  for (const auto& [name, tensor] : sources.values) {
    if (is_whole) {
      builder.define(name, whole(tensor));
      continue;
    }
    builder.define(name, kept("where(weight == 0, stop_gradient(x), x)", builder.input(tensor, true), sources.weights));
  }
  for (const auto& [name, value] : sources.constants) builder.define(name, builder.number(value, 0));

  const Expression expression = parse_expression(sources.text.value);
  refuse_gradients(expression, graph, sources.values);
  const TensorId weights = is_whole ? gathered(graph, sources.weights, *sources.shares, sources.name) : sources.weights;
  ExpressionOperand values = is_whole ? values_of_batch(builder, expression, weights, sources.shares->total())
                                      : MeanValues(builder, weighted).of(expression);
  if (!values.is_tensor()) {
    throw ExpressionError(values.column, "the expression is a number, which the network does not change");
  }
  values = builder.apply(ScalarFunction::multiply, {values, builder.number(sources.scale, 0)}, 0);
  return builder.tensor(kept("where(weight == 0, 0, x)", values, weights));
}

TensorId add_values(Graph& graph, const OutputExpression& expression, const std::string& name,
                    const ExpressionInputs& inputs) {
  const Shape shape = graph.tensor(inputs.predictions).type.shape;
  TensorId targets = inputs.targets;
  if (graph.tensor(targets).type.dtype == DType::int32) {
    targets = graph.add_op(std::make_shared<OneHot>(shape.back()), {targets}, name, expression.text.location)[0];
  }
  const std::int64_t rows = rows_per_weight(shape, graph.tensor(inputs.weights).type.shape);
  return add_values(graph, {.name = name,
                            .text = expression.text,
                            .values = {{"y_pred", inputs.predictions}},
                            .targets = {{"y_true", targets}},
                            .constants = expression.constants,
                            .weights = inputs.weights,
                            .scale = static_cast<double>(rows)});
}

TensorId add_rows(Graph& graph, TensorId values, const std::string& name, std::vector<Op>& ops) {
  const TensorType type = graph.tensor(values).type;
  Tensor rows;
  rows.name = name + "/rows";
  rows.type = {type.shape.with_appended(1), type.dtype};
  ops.push_back({std::make_shared<Reshape>(rows.type.shape), {values}, {}, name, {}});
  return ops.back().outputs.emplace_back(graph.add_tensor(std::move(rows)));
}

std::string mistake_in(const OutputExpression& expression, Graph graph, const ResolvedOutput& output,
                       TensorId predictions) {
  Tensor targets;
  targets.name = output.prefixed("targets");
  targets.type = target_type(output.target_encoding, graph.tensor(predictions).type.shape);
  Tensor weights;
  weights.name = "weights";
  weights.type = graph.tensor(graph.weights).type;
  if (output.masks()) {
    const std::vector<std::int64_t>& sizes = graph.tensor(predictions).type.shape.sizes();
    weights.type.shape = Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end() - 1));
  }
  try {
    const TensorId of_targets = graph.add_tensor(targets), of_weights = graph.add_tensor(weights);
    add_values(graph, expression, "expression", {predictions, of_targets, of_weights});
  } catch (const ExpressionError& error) {
    return error.in_words();
  }
  return "";
}

}  // namespace trainctl
