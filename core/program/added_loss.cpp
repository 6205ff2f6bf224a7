// Expands added losses into ops of the graph.
#include "core/program/added_loss.h"

#include <algorithm>

#include "core/expression/syntax.h"
#include "core/graph/ops/losses/expression_loss.h"
#include "core/graph/ops/masks.h"
#include "core/layers/model/model_options.h"
#include "core/program/expression_values.h"

namespace trainctl {
namespace {

// Returns why the losses of samples cannot be added to those of the outputs, or "".
std::string why_not(const Network& network) {
  if (std::ranges::any_of(network.outputs, [](const ResolvedOutput& output) { return output.masks(); })) {
    return "add_loss is the mean of samples, but the loss of the output is the mean of positions, because a mask or "
           "ignore_index leaves out some of them";
  }
  if (network.graph.tensor(network.graph.weights).type.shape.rank() > 1) {
    return "add_loss is the mean of samples, but the data has a weight for each position";
  }
  return "";
}

}  // namespace

TensorId add_sample_weights(Graph& graph, const std::string& name, bool by_weight) {
  const auto def = std::make_shared<MaskWeights>(false, std::nullopt);
  return graph.add_op(def, {graph.weights, graph.samples}, name, {}, {"weights", "counted"})[by_weight ? 0 : 1];
}

void add_losses(Network& network, const ProgramSpec& spec, const std::vector<std::vector<TensorId>>& tensors,
                const SampleShares& shares, Reader& reader) {
  auto read = tensors.begin();
  for (const auto& [name, loss] : spec.model->add_loss) {
    const std::vector<TensorId>& of_loss = *read++;
    const SourceLocation& location = loss.expression.location;
    if (const std::string problem = why_not(network); !problem.empty()) return reader.error(location, problem);
    Graph& graph = network.graph;
    ExpressionSources sources{.name = "add_loss:" + name, .text = loss.expression, .values = {}};
    for (std::size_t i = 0; i < of_loss.size(); ++i) sources.values[loss.inputs.items[i]] = of_loss[i];
    sources.weights = add_sample_weights(graph, sources.name, spec.divides_by_weight());
    ResolvedOutput output;
    output.name = name;
    output.loss.rule = ExpressionLoss{};
    output.loss.location = location;
    output.weight = loss.weight;
    output.is_added = true;
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
    if (!graph.masks.empty()) graph.masks.push_back(no_tensor);
    network.outputs.push_back(std::move(output));
  }
}

}  // namespace trainctl
