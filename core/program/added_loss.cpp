// Expands added losses into ops of the graph.
#include "core/program/added_loss.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/expression/syntax.h"
#include "core/graph/ops/losses/expression_loss.h"
#include "core/graph/ops/masks.h"
#include "core/graph/ops/one_hot.h"
#include "core/layers/model/model_options.h"
#include "core/program/expression_values.h"

namespace trainctl {
namespace {

// The first output with a loss, if all outputs with losses leave out the same positions. Null if no output has a loss,
// or if outputs count themselves: an added loss then leaves out no positions.
const ResolvedOutput* first_with_loss(const Network& network) {
  if (std::ranges::any_of(network.outputs, &ResolvedOutput::counts_itself)) return nullptr;
  const auto found = std::ranges::find_if(network.outputs, &ResolvedOutput::has_loss);
  return found == network.outputs.end() ? nullptr : &*found;
}

// Returns why a loss of the whole batch cannot be added to those of the outputs, or "".
std::string why_not(const Network& network) {
  const ResolvedOutput* first = first_with_loss(network);
  if (first != nullptr && first->masks()) {
    return "a loss over the whole batch is the mean of samples, but the loss of the output is the mean of positions, "
           "because a mask or ignore_index leaves out some of them";
  }
  if (network.graph.tensor(network.graph.weights).type.shape.rank() > 1) {
    return "a loss over the whole batch is the mean of samples, but the data has a weight for each position";
  }
  return "";
}

// Returns the targets of output `number`, which become an input of the graph when the first loss reads them.
TensorId targets_of(Network& network, const ProgramSpec& spec, std::size_t number) {
  Graph& graph = network.graph;
  const ResolvedOutput& output = network.outputs[number];
  graph.targets.resize(network.outputs.size(), no_tensor);
  TensorId& targets = graph.targets[number];
  if (targets != no_tensor) return targets;
  Tensor input;
  input.name = output.prefixed("targets");
  input.type = output.has_loss() ? output.targets_type(graph.tensor(graph.outputs[number]).type.shape)
                                 : sample_target_type(output.target_encoding, spec.outputs[number].target);
  if (!output.has_loss()) input.type.shape = input.type.shape.with_front(graph.batch);
  input.role = Role::input;
  return targets = graph.add_tensor(std::move(input));
}

// Returns the targets of output `number`, float32 [N, ...]; class numbers become one-hot.
TensorId one_hot_targets(Network& network, const ProgramSpec& spec, std::size_t number, const std::string& name) {
  Graph& graph = network.graph;
  const TensorId targets = targets_of(network, spec, number);
  const ResolvedOutput& output = network.outputs[number];
  if (output.target_encoding != TargetEncoding::class_number) return targets;
  const std::int64_t classes =
      output.has_loss() ? graph.tensor(graph.outputs[number]).type.shape.back() : spec.outputs[number].target.classes;
  return graph.add_op(std::make_shared<OneHot>(classes), {targets}, name, {}, {"y_true"})[0];
}

// The number of the output whose targets an added loss reads.
std::size_t output_of(const ProgramSpec& spec, const AddedLoss& loss) {
  const auto is_read = [&](const ProgramSpec::Output& output) { return output.name == loss.targets.name; };
  const auto found = std::ranges::find_if(spec.outputs, is_read);
  return found == spec.outputs.end() ? 0 : static_cast<std::size_t>(found - spec.outputs.begin());
}

// What leaves out positions of an added loss.
struct Positions {
  TensorId mask = no_tensor, targets = no_tensor;
};

// Lets an added loss count the same positions as the outputs' losses. Returns what leaves out the others.
Positions positions_of(Network& network, const ProgramSpec& spec, ResolvedOutput& output) {
  const ResolvedOutput* first = first_with_loss(network);
  const Shape& weights = network.graph.tensor(network.graph.weights).type.shape;
  if (weights.rank() > 1 && !spec.divides_by_weight()) output.rows_counted = weights.count() / weights[0];
  if (first == nullptr || !first->masks()) return {};
  const auto number = static_cast<std::size_t>(first - network.outputs.data());
  output.rows_counted = 1;
  output.is_masked = first->is_masked;
  output.loss.ignore_index = first->loss.ignore_index;
  Positions positions;
  if (output.is_masked) positions.mask = network.graph.masks[number];
  if (output.loss.ignore_index) positions.targets = targets_of(network, spec, number);
  return positions;
}

// Returns why an added loss cannot read a tensor, or "". `weights`: [N] or, if positions count, [N, P...].
std::string why_not_read(const Shape& read, const Shape& weights) {
  const auto fits = [&](int axis) { return axis < read.rank() && read[axis] == weights[axis]; };
  for (int axis = 1; axis < static_cast<int>(weights.rank()); ++axis) {
    if (fits(axis)) continue;
    return format(
        "the losses are means of the positions {} of a sample, because some positions are left out or have a "
        "weight, but add_loss reads {}, which has no such positions",
        to_string(weights.without_front()), to_string(read.without_front()));
  }
  return "";
}

ResolvedOutput output_of_loss(const std::string& name, const AddedLoss& loss) {
  ResolvedOutput output;
  output.name = name;
  output.loss.rule = ExpressionLoss{};
  output.loss.location = loss.expression.location;
  output.weight = loss.weight;
  output.is_added = true;
  return output;
}

}  // namespace

TensorId add_loss_weights(Graph& graph, const ResolvedOutput& output, TensorId mask, TensorId targets, bool by_weight) {
  std::vector<TensorId> operands{graph.weights, graph.samples};
  if (output.is_masked) operands.push_back(mask);
  if (output.loss.ignore_index) operands.push_back(targets);
  const auto def = std::make_shared<MaskWeights>(output.is_masked, output.loss.ignore_index);
  const std::string name = output.prefixed("loss");
  return graph.add_op(def, std::move(operands), name, {}, {"weights", "counted"})[by_weight ? 0 : 1];
}

void add_losses(Network& network, const ProgramSpec& spec, const std::vector<std::vector<TensorId>>& tensors,
                const SampleShares& shares, Reader& reader) {
  auto read = tensors.begin();
  for (const auto& [name, loss] : spec.model->add_loss) {
    const std::vector<TensorId>& of_loss = *read++;
    const SourceLocation& location = loss.expression.location;
    if (const std::string refusal = why_not(network); loss.whole_batch && !refusal.empty()) {
      return reader.error(location, refusal);
    }
    Graph& graph = network.graph;
    ExpressionSources sources{.name = "add_loss:" + name, .text = loss.expression, .values = {}};
    for (std::size_t i = 0; i < of_loss.size(); ++i) sources.values[loss.inputs.items[i]] = of_loss[i];
    if (loss.reads_targets()) {
      sources.targets["y_true"] = one_hot_targets(network, spec, output_of(spec, loss), sources.name);
    }
    ResolvedOutput output = output_of_loss(name, loss);
    const Positions positions = positions_of(network, spec, output);
    sources.weights = add_loss_weights(graph, output, positions.mask, positions.targets, spec.divides_by_weight());
    std::string problem;
    for (const TensorId id : of_loss) {
      if (problem.empty())
        problem = why_not_read(graph.tensor(id).type.shape, graph.tensor(sources.weights).type.shape);
    }
    if (!problem.empty()) return reader.error(location, problem);
    if (loss.whole_batch) {
      output.shares = shares.counts.empty() ? SampleShares{{graph.batch}, 0} : shares;
      sources.shares = &output.shares;
    }
    try {
      graph.outputs.push_back(add_values(graph, sources));
    } catch (const ExpressionError& error) {
      reader.error(location, error.in_words());
      continue;
    }
    if (positions.mask != no_tensor || !graph.masks.empty()) graph.masks.resize(network.outputs.size(), no_tensor);
    if (!graph.masks.empty()) graph.masks.push_back(positions.mask);
    if (!graph.targets.empty()) {
      graph.targets.resize(network.outputs.size(), no_tensor);
      graph.targets.push_back(positions.targets);
    }
    network.outputs.push_back(std::move(output));
  }
}

}  // namespace trainctl
