// Adds the targets, metrics, losses and predictions of outputs.
#include "core/program/output_head.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/expression/scalar_graph.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/graph/ops/losses/losses.h"
#include "core/graph/ops/masks.h"
#include "core/graph/ops/metrics/metrics.h"
#include "core/graph/ops/metrics/token_bytes.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/graph/ops/training/count.h"
#include "core/graph/ops/training/update.h"
#include "core/metrics/targets.h"
#include "core/program/added_loss.h"
#include "core/program/expression_values.h"
#include "core/program/fused_loss.h"
#include "core/program/placements.h"

namespace trainctl {
namespace {

TensorId add(Graph& graph, std::string name, TensorType type, Role role) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = std::move(type);
  tensor.role = role;
  return graph.add_tensor(std::move(tensor));
}

// Adds the final activation, which is fused into the loss, in float32.
void add_predictions(OutputHead& head, Graph& graph) {
  head.predictions = head.whole_logits;
  const std::string name = head.output.prefixed("predictions");
  const auto append = [&](std::shared_ptr<const OpDef> def, const char* suffix) {
    const TensorType type{graph.tensor(head.whole_logits).type.shape, DType::float32};
    const TensorId next = add(graph, name + suffix, type, Role::activation);
    head.prediction_ops.push_back({std::move(def), {head.predictions}, {next}, name, {}});
    head.predictions = next;
  };
  if (graph.tensor(head.whole_logits).type.dtype != DType::float32) {
    append(std::make_shared<Cast>(DType::float32), "/float32");
  }
  const FinalActivation folded = head.output.loss.folded;
  if (folded == FinalActivation::softmax) append(std::make_shared<Softmax>(), "/softmax");
  if (folded == FinalActivation::sigmoid) {
    append(std::make_shared<Activation>(ActivationFunction{ActivationKind::sigmoid}), "/sigmoid");
  }
}

// Adds the sums of an output's loss and metrics.
void add_sums(OutputHead& head, Graph& graph) {
  const ResolvedOutput& output = head.output;
  head.loss = add(graph, output.prefixed("loss"), {}, Role::reduced);
  for (const ResolvedMetric& metric : output.metrics) {
    const int sums = sums_of(metric.rule);
    const TensorType sum_type{sums == 1 ? Shape{} : Shape{sums}, DType::float32};
    // The user's names of metrics must not be those of other tensors. Names of layers have no ':'.
    const std::string name = output.prefixed(metric.name) + (metric.expression != nullptr ? ":sum" : "");
    head.metrics.push_back(add(graph, name, sum_type, Role::reduced));
  }
  if (output.token_bytes) head.metrics.push_back(add(graph, output.prefixed("bytes"), {}, Role::reduced));
  if (output.plain_crossentropy) {
    head.metrics.push_back(add(graph, output.prefixed("crossentropy"), {}, Role::reduced));
  }
  if (!output.counts_itself) return;
  head.count = add(graph, output.prefixed("count"), {}, Role::reduced);
  head.weight = add(graph, output.prefixed("weight"), {}, Role::reduced);
  if (graph.training) head.factor = add(graph, output.prefixed("factor"), {}, Role::scalar);
}

std::shared_ptr<const OpDef> gather_columns(const MeshRank& rank, std::int64_t columns) {
  const ShardPosition shard{rank.size(MeshAxis::tensor), rank.along(MeshAxis::tensor)};
  return std::make_shared<AllGatherColumns>(MeshAxis::tensor, shard, columns);
}

Op gather(TensorId shard, TensorId whole, std::string name, const Graph& graph, const MeshRank& rank) {
  return {gather_columns(rank, graph.tensor(whole).type.shape.back()), {shard}, {whole}, std::move(name), {}};
}

// The shape of the whole tensor of which the ranks along the tensor axis hold shards.
const Shape& whole_shape(const Tensor& tensor) { return tensor.shard ? tensor.shard->whole : tensor.type.shape; }

// The class sums of this rank and of all ranks.
struct GatheredSums {
  TensorId own, all;
};

// Adds the ops by which ranks that hold different ranges of the classes compute the class sums of a loss.
GatheredSums add_class_sums_of(const LossRule& rule, const char* result, OutputHead& head, Graph& graph,
                               const MeshRank& rank) {
  const Shape logits = graph.tensor(head.logits).type.shape;
  const std::string name = head.output.prefixed(result);
  const TensorType own{logits.with_back(class_sums), DType::float32},
      all{logits.with_back(class_sums * rank.size(MeshAxis::tensor)), own.dtype};
  const GatheredSums sums{add(graph, name, own, Role::activation),
                          add(graph, name + "/gathered", all, Role::activation)};
  head.row_ops.push_back({std::make_shared<ClassSums>(rule, *head.classes),
                          {head.logits, head.targets},
                          {sums.own},
                          name,
                          head.output.loss.location});
  head.row_ops.push_back(gather(sums.own, sums.all, name, graph, rank));
  return sums;
}

// Adds the class sums of an output whose classes are split among ranks.
void add_class_sums(OutputHead& head, Graph& graph, const MeshRank& rank) {
  const int ranks = rank.size(MeshAxis::tensor);
  const std::int64_t classes = whole_shape(graph.tensor(head.logits)).back();
  head.classes = ColumnRange{ShardPosition{ranks, rank.along(MeshAxis::tensor)}.first_of(classes), classes};
  const auto [own, all] = add_class_sums_of(head.output.loss.rule, "class_sums", head, graph, rank);
  head.class_sums = own;
  head.all_class_sums = head.plain_class_sums = all;
  const std::optional<LossRule>& plain = head.output.plain_crossentropy;
  if (!plain || !head.output.smooths_targets()) return;  // the z-loss alone does not change the class sums
  head.plain_class_sums = add_class_sums_of(*plain, "crossentropy/class_sums", head, graph, rank).all;
}

// The op that computes the sum of the cross-entropy without further terms. It precedes the op of the loss, which writes
// the gradient in place of the logits.
Op plain_crossentropy_op(const OutputHead& head, TensorId weights, bool accumulate) {
  const ResolvedOutput& output = head.output;
  std::vector<TensorId> inputs{head.is_fused ? head.class_sums : head.logits, head.targets, weights};
  if (head.classes && !head.is_fused) inputs.push_back(head.plain_class_sums);
  auto def =
      std::make_shared<Loss>(*output.plain_crossentropy, false, accumulate, 1.0f, false, head.classes, head.is_fused);
  return {
      std::move(def), std::move(inputs), {head.metrics.back()}, output.prefixed("crossentropy"), output.loss.location};
}

// Adds the weights of the positions, if losses and metrics leave out some of them.
void add_weights(OutputHead& head, TensorId mask, Graph& graph) {
  const ResolvedOutput& output = head.output;
  if (!output.masks()) return;
  const std::string name = output.prefixed("position_weights");
  std::vector<TensorId> operands{graph.weights, graph.samples};
  if (output.is_masked) operands.push_back(mask);
  if (output.loss.ignore_index) operands.push_back(head.targets);
  const TensorType type{graph.tensor(operands[2]).type.shape, DType::float32};
  head.weights = add(graph, name, type, Role::activation);
  head.counted = add(graph, name + "/counted", type, Role::activation);
  head.weight_ops = {{std::make_shared<MaskWeights>(output.is_masked, output.loss.ignore_index),
                      std::move(operands),
                      {head.weights, head.counted},
                      name,
                      output.loss.location}};
}

// The op y = factor * x, where the factor is a scalar.
std::shared_ptr<const OpDef> multiplication(DType dtype) {
  ScalarGraph product;
  const int results[] = {product.apply(ScalarFunction::multiply, product.of_input(0), product.of_input(1))};
  return std::make_shared<Elementwise>(product.program(results), std::vector{dtype});
}

// Adds the weights of the positions times the factor of the gradient, for a loss that is fused.
TensorId add_scaled_weights(OutputHead& head, Graph& graph) {
  const std::string name = head.output.prefixed("position_weights");
  const TensorId scaled = add(graph, name + "/scaled", graph.tensor(head.weights).type, Role::activation);
  head.weight_ops.push_back({multiplication(DType::float32), {head.weights, head.factor}, {scaled}, name, {}});
  return scaled;
}

// Sets the values of a loss that is an expression.
void set_values(OutputHead& head, TensorId values, Graph& graph) {
  head.values = values;
  head.value_rows = add_rows(graph, values, head.output.prefixed("loss"), head.row_ops);
  head.value_weights = head.weights != no_tensor ? head.weights : graph.weights;
}

// Adds the values of the metrics that are expressions. Their ops follow those of the predictions; they are not in the
// graph, because nothing is differentiated with respect to them.
void add_metric_rows(OutputHead& head, Graph& graph) {
  const TensorId weights = head.weights != no_tensor ? head.weights : graph.weights;
  for (const ResolvedMetric& metric : head.output.metrics) {
    head.metric_rows.push_back(no_tensor);
    if (metric.expression == nullptr) continue;
    const auto before = std::ssize(graph.ops);
    const std::string name = head.output.prefixed(metric.name);
    const TensorId values = add_values(graph, *metric.expression, name, {head.predictions, head.targets, weights});
    std::move(graph.ops.begin() + before, graph.ops.end(), std::back_inserter(head.row_ops));
    graph.ops.erase(graph.ops.begin() + before, graph.ops.end());
    head.metric_rows.back() = add_rows(graph, values, name, head.row_ops);
  }
}

// Adds the gradient of the loss with respect to what its op reads.
void add_gradients(OutputHead& head, Graph& graph) {
  const Tensor& of = graph.tensor(head.values != no_tensor ? head.values : head.logits);
  const TensorType type = of.type;
  head.loss_gradient = add(graph, of.name + "/gradient", type, Role::activation);
  if (graph.compute != DType::float16 && head.factor == no_tensor) return;
  head.unscaled_gradient = head.loss_gradient;
  const std::string name = head.output.prefixed("loss");
  head.loss_gradient = add(graph, name + "/gradient/scaled", type, Role::activation);
  if (head.factor == no_tensor) return;
  head.gradient_ops = {
      {multiplication(type.dtype), {head.unscaled_gradient, head.factor}, {head.loss_gradient}, name, {}}};
}

// Adds the head of an added loss. If it is one over the whole batch, its values are those of all ranks, of which this
// rank's are reported.
void add_added_loss(OutputHead& head, TensorId mask, bool by_weight, Graph& graph) {
  const std::string name = head.output.prefixed("loss");
  const SampleShares& shares = head.output.shares;
  add_sums(head, graph);
  head.weights = head.counted = add_loss_weights(graph, head.output, mask, head.targets, by_weight);
  if (shares.counts.size() > 1) {
    head.value_weights = gathered(graph, head.weights, shares, name);
    const TensorId own = graph.add_op(std::make_shared<TakeSamples>(shares), {head.logits}, name, {}, {"own"})[0];
    head.value_rows = add_rows(graph, own, name, head.row_ops);
    head.values = head.logits;
  } else {
    set_values(head, head.logits, graph);
  }
  if (graph.training) add_gradients(head, graph);
}

// The op that computes the gradient of the weighted sum of a loss expression's values, which have the shape of the
// weights.
Op gradient_of_values(const OutputHead& head, TensorId weights, TensorId gradient) {
  ScalarGraph product;
  const int results[] = {
      product.apply(ScalarFunction::multiply, product.of_input(0), product.of_constant(head.output.gradient_scale()))};
  auto def = std::make_shared<Elementwise>(product.program(results), std::vector{DType::float32});
  return {std::move(def), {weights}, {gradient}, head.output.prefixed("loss"), head.output.loss.location};
}

// Whether a metric can be computed from class sums, for an output with classes that are split among ranks.
bool takes_class_sums(const ResolvedMetric& metric, const ResolvedOutput& output) {
  return std::holds_alternative<Accuracy>(metric.rule) && output.target_encoding == TargetEncoding::class_number;
}

// Appends the ops for the sums that divide those of an output that counts itself.
void append_counts(const OutputHead& head, const SharedSums& shared, bool counts, bool accumulate,
                   std::vector<Op>& ops) {
  const auto append = [&](TensorId counted, TensorId sum, const char* name) {
    ops.push_back({std::make_shared<Count>(accumulate), {counted}, {sum}, head.output.prefixed(name), {}});
  };
  append(head.counted, head.count, "count");
  append(head.weights, head.weight, "weight");
  if (counts) ops.push_back({std::make_shared<Count>(accumulate), {shared.weights}, {shared.weight}, "weight", {}});
}

}  // namespace

OutputHead prediction_head(ResolvedOutput output, TensorId logits, Graph& graph) {
  OutputHead head;
  head.output = std::move(output);
  head.logits = head.whole_logits = logits;
  add_predictions(head, graph);
  return head;
}

OutputHead head_without_loss(ResolvedOutput output, const OutputTensors& of, Graph& graph) {
  OutputHead head;
  if (of.logits != no_tensor && !graph.training) {
    head = prediction_head(std::move(output), of.logits, graph);
  } else {
    head.output = std::move(output);
    head.logits = of.logits;
  }
  head.targets = of.targets;
  return head;
}

OutputHead loss_head(ResolvedOutput resolved, const OutputTensors& of, bool by_weight, Graph& graph,
                     const MeshRank& rank) {
  OutputHead head;
  head.output = std::move(resolved);
  head.logits = of.logits;
  head.targets = of.targets;
  const TensorId logits = of.logits;
  const ResolvedOutput& output = head.output;
  if (logits == no_tensor) {
    add_sums(head, graph);
    return head;
  }
  if (output.is_added) {
    add_added_loss(head, of.mask, by_weight, graph);
    return head;
  }
  const TensorType type = graph.tensor(logits).type;
  const int ranks = declared_split(graph.tensor(logits), MeshAxis::tensor) ? rank.size(MeshAxis::tensor) : 1;
  const TensorType whole{ranks == 1 ? type.shape : whole_shape(graph.tensor(logits)), type.dtype};
  if (head.targets == no_tensor) {
    head.targets = add(graph, output.prefixed("targets"), output.targets_type(whole.shape), Role::input);
  }
  if (is_over_sequences(output.loss.rule)) head.steps = of.mask;
  add_weights(head, of.mask, graph);
  if (output.counts_itself && by_weight) head.counted = head.weights;
  add_sums(head, graph);
  if (ranks == 1 && fuses_loss(graph, logits, output)) {
    head.is_fused = true;
    head.classes = ColumnRange{0, type.shape.back()};
    TensorId weights = head.weights != no_tensor ? head.weights : graph.weights;
    if (head.factor != no_tensor) weights = add_scaled_weights(head, graph);
    head.class_sums = head.all_class_sums = fuse_loss(graph, logits, output, head.targets, weights);
    return head;
  }
  if (output.loss.expression != nullptr) {
    // The ops of the graph that compute the values read the weights of positions.
    head.first_value_op = graph.ops.size();
    std::ranges::move(head.weight_ops, std::back_inserter(graph.ops));
    head.weight_ops.clear();
    const TensorId weights = head.weights != no_tensor ? head.weights : graph.weights;
    const std::string name = output.prefixed("loss");
    set_values(head, add_values(graph, *output.loss.expression, name, {logits, head.targets, weights}), graph);
    head.end_of_value_ops = graph.ops.size();
  }
  if (graph.training) add_gradients(head, graph);
  const auto any_metric = [&](const auto& is) { return std::any_of(output.metrics.begin(), output.metrics.end(), is); };
  // An evaluation computes the predictions of samples, which the host shows. Predictions of each position are needed
  // by metrics only, and are not gathered for others.
  const bool shows = !graph.training && (ranks == 1 || type.shape.rank() == 2);
  const bool predicts = shows || any_metric([](const ResolvedMetric& m) { return m.of_predictions; });
  if (ranks == 1) {
    head.whole_logits = logits;
  } else {
    add_class_sums(head, graph, rank);
    if (predicts || any_metric([&](const ResolvedMetric& m) { return !takes_class_sums(m, output); })) {
      head.whole_logits = add(graph, graph.tensor(logits).name + "/gathered", whole, Role::activation);
      head.prediction_ops.push_back(gather(logits, head.whole_logits, output.prefixed("predictions"), graph, rank));
    }
  }
  if (predicts) add_predictions(head, graph);
  add_metric_rows(head, graph);
  return head;
}

void gather_outputs(Graph& graph, const std::vector<ResolvedOutput>& outputs, const MeshRank& rank, bool predicts) {
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    TensorId& output = graph.outputs[i];
    if (output == no_tensor || !declared_split(graph.tensor(output), MeshAxis::tensor)) continue;
    if (!predicts && is_over_classes(outputs[i].loss.rule)) continue;
    const auto makes = [&](const Op& op) { return std::ranges::find(op.outputs, output) != op.outputs.end(); };
    const std::string layer = std::ranges::find_if(graph.ops, makes)->name;
    const auto def = gather_columns(rank, whole_shape(graph.tensor(output)).back());
    output = graph.add_op(def, {output}, layer, graph.tensor(output).location, {"gathered"})[0];
  }
}

std::vector<Op> sum_ops(const OutputHead& head, const SharedSums& shared, bool counts, bool training, bool accumulate) {
  const ResolvedOutput& output = head.output;
  std::vector<Op> ops = head.row_ops;
  const TensorId weights = head.weights != no_tensor ? head.weights : shared.weights;
  for (std::size_t i = 0; i < output.metrics.size(); ++i) {
    const ResolvedMetric& metric = output.metrics[i];
    const bool of_sums = head.classes && takes_class_sums(metric, output);
    TensorId input = metric.of_predictions ? head.predictions : head.whole_logits, targets = head.targets;
    if (of_sums) input = head.all_class_sums;
    if (metric.expression != nullptr) input = targets = head.metric_rows[i];
    auto def = std::make_shared<Metric>(metric.rule, accumulate, of_sums);
    std::vector<TensorId> inputs{input, targets, weights};
    def->masked = head.steps != no_tensor;
    if (def->masked) inputs.push_back(head.steps);
    ops.push_back(
        {std::move(def), std::move(inputs), {head.metrics[i]}, output.prefixed(metric.name), metric.location});
  }
  if (output.token_bytes) {
    ops.push_back({std::make_shared<TokenBytes>(output.token_bytes, accumulate),
                   {head.targets, weights},
                   {head.metrics[output.metrics.size()]},
                   output.prefixed("bytes"),
                   output.loss.location});
  }
  if (output.plain_crossentropy) ops.push_back(plain_crossentropy_op(head, weights, accumulate));
  if (output.counts_itself) append_counts(head, shared, std::exchange(counts, false), accumulate, ops);
  const bool scales = head.unscaled_gradient != no_tensor;
  std::vector<TensorId> results{head.loss};
  if (counts) results.push_back(shared.weight);
  const bool is_expression = head.values != no_tensor;
  const bool differentiates = training && !head.is_fused && !is_expression;
  if (differentiates) results.push_back(scales ? head.unscaled_gradient : head.loss_gradient);
  std::vector<TensorId> inputs{head.is_fused ? head.class_sums : head.logits, head.targets, weights};
  if (head.classes && !head.is_fused) inputs.push_back(head.all_class_sums);
  if (is_expression) {
    inputs[0] = inputs[1] = head.value_rows;
    if (training)
      ops.push_back(gradient_of_values(head, head.value_weights, scales ? head.unscaled_gradient : head.loss_gradient));
  }
  auto loss = std::make_shared<Loss>(output.loss.rule, differentiates, accumulate, output.gradient_scale(), counts,
                                     head.classes, head.is_fused);
  loss->masked = head.steps != no_tensor;
  if (loss->masked) inputs.push_back(head.steps);
  ops.push_back(
      {std::move(loss), std::move(inputs), std::move(results), output.prefixed("loss"), output.loss.location});
  if (!head.gradient_ops.empty()) {
    ops.insert(ops.end(), head.gradient_ops.begin(), head.gradient_ops.end());
  } else if (scales) {
    ops.push_back({std::make_shared<Scale>(),
                   {head.unscaled_gradient, shared.loss_scale},
                   {head.loss_gradient},
                   output.prefixed("loss_scale"),
                   output.loss.location});
  }
  return ops;
}

std::vector<Op> zero_sums(const OutputHead& head, const SharedSums& shared, bool counts, const Graph& graph) {
  std::vector<TensorId> sums{head.loss};
  sums.insert(sums.end(), head.metrics.begin(), head.metrics.end());
  if (head.output.counts_itself) sums.insert(sums.end(), {head.count, head.weight});
  if (counts) sums.push_back(shared.weight);
  std::vector<Op> ops;
  for (TensorId sum : sums) {
    const Tensor& tensor = graph.tensor(sum);
    ops.push_back({std::make_shared<ZeroGradients>(tensor.type.shape.count()), {}, {sum}, tensor.name, {}});
  }
  return ops;
}

}  // namespace trainctl
