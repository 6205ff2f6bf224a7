// Builds a forward graph from the options of a model, its losses and its metrics.
#include "core/program/network.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/metrics/output_expression.h"
#include "core/optim/optimizer.h"
#include "core/program/added_loss.h"
#include "core/program/expression_values.h"
#include "core/program/teachers.h"

namespace trainctl {
namespace {

// Resolves the loss of an output. If the loss reads logits, the softmax or sigmoid at the end of the output is left
// out.
ResolvedOutput resolve_output(const ProgramSpec& spec, std::size_t number, Reader& reader) {
  const ProgramSpec::Output& output = spec.outputs[number];
  ResolvedOutput resolved;
  resolved.name = output.name;
  resolved.weight = output.weight;
  const FinalActivation ending = final_activation(*spec.model, number);
  if (output.loss) {
    resolved.loss = resolve_loss(output.loss, ending, reader);
    if (output.target.mixed) resolved.loss.rule = of_probabilities(resolved.loss.rule);
  } else {
    resolved.loss.folded = ending;
  }
  return resolved;
}

// Resolves the metrics, the encoding of the targets and the rows of an output of shape [n, P..., K].
void match_output(const ProgramSpec& spec, const ProgramSpec::Output& output, const Graph& graph, TensorId predictions,
                  ResolvedOutput& resolved, Reader& reader) {
  const Shape& shape = graph.tensor(predictions).type.shape;
  const std::size_t before = reader.count();
  if (resolved.loss.is_none) {
    if (adds_loss_of_targets(*spec.model, output.name)) resolved.target_encoding = declared_encoding(output.target);
    if (!output.metrics.empty()) {
      reader.error(output.metrics.front().location,
                   "a metric needs the targets that a loss compares with the output, but the loss of this output is "
                   "none: leave the metric out, or give the output a loss");
    }
    return;
  }
  resolved.target_encoding = match_targets(resolved.loss, shape, output.target, reader);
  if (reader.count() == before) match_weights(resolved.loss, shape, spec.weight, reader);
  resolved.metrics = resolve_metrics(output.metrics, resolved.loss, shape, reader);
  resolved.perplexity = wants_perplexity(output.metrics, resolved.loss, reader);
  resolved.token_bytes = bytes_for_bits_per_byte(output.metrics, resolved.loss, output.target, reader);
  if (reader.count() != before) return;
  if (resolved.perplexity || resolved.token_bytes) {
    resolved.plain_crossentropy = crossentropy_without_terms(resolved.loss.rule);
  }
  if (resolved.loss.ignore_index && resolved.target_encoding != TargetEncoding::class_number) {
    reader.error(resolved.loss.location, "ignore_index needs class numbers as targets, but training mixes samples");
  }
  const auto check = [&](const std::shared_ptr<const OutputExpression>& expression) {
    if (expression == nullptr) return;
    const std::string mistake = mistake_in(*expression, graph, resolved, predictions);
    if (!mistake.empty()) reader.error(expression->text.location, mistake);
  };
  check(resolved.loss.expression);
  for (const ResolvedMetric& metric : resolved.metrics) check(metric.expression);
  if (resolved.masks()) return;                 // each position has its own weight and counts by itself
  if (is_over_sequences(resolved.loss.rule)) {  // each sample counts once
    resolved.target_length = target_length(shape, output.target);
    return;
  }
  resolved.rows_each = rows_per_weight(shape, spec.weight.with_front(shape[0]));
  resolved.rows_counted = spec.divides_by_weight() ? resolved.rows_each : shape.rows() / shape[0];
}

// Lets the outputs that leave out positions count their own positions, if the losses of the outputs leave out different
// positions. Otherwise one count divides all losses.
void count_apart(const ProgramSpec& spec, Network& network, Reader& reader) {
  std::vector<ResolvedOutput>& outputs = network.outputs;
  const auto has_loss = [](const ResolvedOutput& output) { return output.has_loss(); };
  const auto first = static_cast<std::size_t>(std::ranges::find_if(outputs, has_loss) - outputs.begin());
  const auto mask_of = [&](std::size_t i) { return outputs[i].is_masked ? network.graph.masks[i] : no_tensor; };
  const auto differs = [&](std::size_t i) {
    return has_loss(outputs[i]) && (mask_of(i) != mask_of(first) || outputs[i].loss.ignore_index.has_value() ||
                                    outputs[first].loss.ignore_index.has_value());
  };
  std::size_t other = first + 1;
  while (other < outputs.size() && !differs(other)) ++other;
  if (other >= outputs.size()) return;
  for (ResolvedOutput& output : outputs) output.counts_itself = output.has_loss() && output.masks();
  if (spec.players.empty()) return;
  reader.error(outputs[other].loss.location,
               format("the outputs '{}' and '{}' leave out different positions of a sample (by padding masks or "
                      "ignore_index), but players divide the losses of all outputs by the same number of positions: "
                      "give all outputs the mask of the same layer, and use no ignore_index",
                      outputs[first].name, outputs[other].name));
}

// Returns a warning if an output has more values than its targets have classes, else "". Classes of positions, such
// as tokens, are not checked: a data set may use only some tokens of the vocabulary.
std::string width_warning(const ResolvedOutput& output, const Shape& shape, const TargetInfo& targets) {
  const bool of_classes =
      output.target_encoding == TargetEncoding::class_number && shape.rank() == 2 && targets.classes > 0;
  if (!of_classes || shape.back() <= targets.classes) return "";
  const std::int64_t useless = shape.back() - targets.classes;
  return format("{}: the output{} has {} and the data {}, so that {} never right: set {} in the last layer",
                to_string(output.loss.location), output.name.empty() ? "" : format(" '{}'", output.name),
                counted(shape.back(), "value"), counted(targets.classes, "class"),
                useless == 1 ? "1 value is" : format("{} values are", useless), counted(targets.classes, "unit"));
}

// The function of the op that computes a tensor, if it is a softmax or a sigmoid.
FinalActivation activation_before(const Graph& graph, TensorId tensor) {
  for (const Op& op : graph.ops) {
    if (std::ranges::find(op.outputs, tensor) == op.outputs.end()) continue;
    if (op.get_if<Softmax>() != nullptr) return FinalActivation::softmax;
    if (const auto* dense = op.get_if<Dense>()) {
      if (dense->function.kind == ActivationKind::sigmoid) return FinalActivation::sigmoid;
    }
    const auto* activation = op.get_if<Activation>();
    const bool sigmoid = activation != nullptr && activation->function.kind == ActivationKind::sigmoid;
    return sigmoid ? FinalActivation::sigmoid : FinalActivation::none;
  }
  return FinalActivation::none;
}

// Returns a warning if the softmax or sigmoid of an output, or of a loss that takes the output for logits, reads the
// result of another one; else "".
std::string twice_warning(const ResolvedOutput& output, const Graph& graph, TensorId predictions) {
  const LossLink link = link_of(output.loss.rule);
  if (link == LossLink::identity) return "";
  const auto expected = link == LossLink::sigmoid ? FinalActivation::sigmoid : FinalActivation::softmax;
  if (activation_before(graph, predictions) != expected) return "";
  const char* const name = expected == FinalActivation::softmax ? "softmax" : "sigmoid";
  const std::string advice =
      output.loss.folded == expected
          ? format("the network ends in a {} of a {}: remove one of the two", name, name)
          : format("the network ends in a {}, but from_logits: true adds another one: leave from_logits out", name);
  return format("{}: {}; a {} of values between 0 and 1 is nearly the same for all classes",
                to_string(output.loss.location), advice, name);
}

// Reports patterns of the optimizer that match no parameter.
void check_patterns_of(const Choice& optimizer, const Graph& graph, Reader& reader) {
  if (optimizer.options == nullptr) return;
  std::vector<std::string> names;
  for (const GraphParameter& parameter : graph.parameters) names.push_back(graph.tensor(parameter.tensor).name);
  optimizer.as<OptimizerOptions>().check_patterns(names, reader);
}

}  // namespace

Network build_network(const ProgramSpec& spec, std::int64_t micro_batch, bool training, Reader& reader,
                      const SampleShares& shares) {
  Network network;
  BuildOptions options;
  options.batch = micro_batch;
  options.inputs = spec.inputs;
  options.training = training;
  options.compute = spec.compute;
  options.seed = spec.seed;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    network.outputs.push_back(resolve_output(spec, i, reader));
    options.logits.push_back(network.outputs[i].loss.folded != FinalActivation::none);
  }
  // If other layers or added losses read an output of a prediction, the network computes its activation itself. It does
  // so for all outputs, since only the second attempt reports mistakes.
  Reader attempt;
  BuiltModel built = build_model(*spec.model, options, spec.predicts() ? attempt : reader);
  if (!attempt.ok()) {
    options.logits.clear();
    for (ResolvedOutput& output : network.outputs) output.loss.folded = FinalActivation::none;
    built = build_model(*spec.model, options, reader);
  }
  if (!reader.ok()) return network;
  network.graph = std::move(built.graph);
  network.layers = std::move(built.layers);
  follow_teachers(spec, network, reader);
  network.blocks = std::move(built.blocks);
  if (spec.predicts()) {
    network.graph.masks.clear();
    return network;
  }
  if (training) check_patterns_of(spec.optimizer, network.graph, reader);
  Tensor weights;
  weights.name = "weights";
  weights.type.shape = spec.weight.with_front(micro_batch);
  weights.role = Role::input;
  network.graph.weights = network.graph.add_tensor(std::move(weights));
  if (network.graph.samples == no_tensor) network.graph.samples = add_sample_numbers(network.graph);
  for (std::size_t i = 0; i < spec.outputs.size() && !network.graph.masks.empty(); ++i) {
    ResolvedOutput& output = network.outputs[i];
    output.is_masked = network.graph.masks[i] != no_tensor && output.has_loss() && !is_over_sequences(output.loss.rule);
  }
  count_apart(spec, network, reader);
  bool known = true;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    const Shape& shape = network.graph.tensor(network.graph.outputs[i]).type.shape;
    ResolvedOutput& output = network.outputs[i];
    match_output(spec, spec.outputs[i], network.graph, network.graph.outputs[i], output, reader);
    if (!reader.ok() || !output.has_loss()) continue;
    std::string twice = twice_warning(output, network.graph, network.graph.outputs[i]);
    if (!twice.empty()) network.warnings.push_back(std::move(twice));
    std::string wide = width_warning(network.outputs[i], shape, spec.outputs[i].target);
    if (!wide.empty()) network.warnings.push_back(std::move(wide));
    const double chance = chance_loss(network.outputs[i].loss.rule, shape);
    known = known && chance != 0;
    network.chance_loss += network.outputs[i].weight * chance;
  }
  const auto is_none = [](const ResolvedOutput& output) { return output.loss.is_none; };
  if (built.added_losses.empty() && std::ranges::all_of(network.outputs, is_none)) {
    reader.error(network.outputs[0].loss.location,
                 "nothing trains the network: give an output a loss, or add one with model.add_loss");
  }
  if (reader.ok()) add_losses(network, spec, built.added_losses, shares, reader);
  if (!known || !built.added_losses.empty()) network.chance_loss = 0;
  return network;
}

}  // namespace trainctl
