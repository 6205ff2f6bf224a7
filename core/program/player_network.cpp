// Restricts networks to the losses and parameters of players.
#include "core/program/player_network.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "core/base/format.h"
#include "core/layers/model/names.h"
#include "core/metrics/means.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

// The name of a loss in the config.
std::string label_of(const ResolvedOutput& output) { return output.name.empty() ? "output" : output.name; }

std::vector<std::string> labels_of(const std::vector<ResolvedOutput>& outputs) {
  std::vector<std::string> labels;
  for (const ResolvedOutput& output : outputs) labels.push_back(label_of(output));
  return labels;
}

// The path of the layer that has a parameter.
std::string layer_of(const std::string& parameter) { return parameter.substr(0, parameter.rfind('/')); }

bool matches(const Reference& pattern, const std::string& parameter) {
  return blocks_above(pattern.name, layer_of(parameter)) >= 0;
}

void check_losses(const ProgramSpec& spec, const std::vector<ResolvedOutput>& outputs, Reader& reader) {
  const std::vector<std::string> labels = labels_of(outputs);
  std::set<std::string> minimized;
  for (const ProgramSpec::Player& player : spec.players) {
    for (const Reference& loss : player.losses) {
      minimized.insert(loss.name);
      if (std::ranges::find(labels, loss.name) != labels.end()) continue;
      std::string hint = suggestion(loss.name, labels);
      if (hint.empty()) hint = "; there is " + join_or(labels);
      reader.error(loss.location, format("player '{}': the model has no loss '{}'{}", player.name, loss.name, hint));
    }
  }
  for (const ResolvedOutput& output : outputs) {
    if (minimized.contains(label_of(output))) continue;
    reader.error(output.loss.location,
                 format("no player minimizes the loss '{}': name it in the `loss` of a player", label_of(output)));
  }
}

void check_trained(const ProgramSpec& spec, Network& network, Reader& reader) {
  std::map<std::string, const ProgramSpec::Player*> trained;  // key: the layer
  std::set<std::string> untrained;
  std::set<const Reference*> used;
  for (const GraphParameter& parameter : network.graph.parameters) {
    const std::string& name = network.graph.tensor(parameter.tensor).name;
    bool is_trained = !parameter.trainable;
    for (const ProgramSpec::Player& player : spec.players) {
      for (const Reference& pattern : player.trains) {
        if (!matches(pattern, name) || !parameter.trainable) continue;
        used.insert(&pattern);
        is_trained = true;
        const ProgramSpec::Player* const first = trained.try_emplace(layer_of(name), &player).first->second;
        if (first == &player) continue;
        reader.error(pattern.location,
                     format("two players, '{}' and '{}', train the layer '{}': each layer has one optimizer",
                            first->name, player.name, layer_of(name)));
        return;
      }
    }
    if (!is_trained) untrained.insert(layer_of(name));
  }
  for (const ProgramSpec::Player& player : spec.players) {
    for (const Reference& pattern : player.trains) {
      if (used.contains(&pattern)) continue;
      reader.error(pattern.location,
                   format("player '{}': no layer with weights that train is named '{}'", player.name, pattern.name));
    }
  }
  for (const std::string& layer : untrained) {
    network.warnings.push_back(format(
        "no player trains the layer '{}', whose weights stay as they are: add it to the `trains` of a player", layer));
  }
}

// Removes the ops that no output needs.
void remove_unread(Graph& graph) {
  std::set<TensorId> read(graph.outputs.begin(), graph.outputs.end());
  read.insert(graph.masks.begin(), graph.masks.end());
  std::vector<Op> kept;
  for (auto op = graph.ops.rbegin(); op != graph.ops.rend(); ++op) {
    if (std::ranges::none_of(op->outputs, [&](TensorId id) { return read.contains(id); })) continue;
    read.insert(op->inputs.begin(), op->inputs.end());
    read.insert(op->outputs.begin(), op->outputs.end());
    kept.push_back(std::move(*op));
  }
  graph.ops.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  for (GraphStatistic& statistic : graph.statistics) {
    if (!read.contains(statistic.batch_value)) statistic.batch_value = no_tensor;
  }
}

}  // namespace

std::vector<std::size_t> losses_of(const ProgramSpec::Player& player, const std::vector<ResolvedOutput>& outputs) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (std::ranges::find(player.losses, label_of(outputs[i]), &Reference::name) != player.losses.end()) {
      numbers.push_back(i);
    }
  }
  return numbers;
}

bool trains(const ProgramSpec::Player& player, const std::string& parameter) {
  return std::ranges::any_of(player.trains, [&](const Reference& pattern) { return matches(pattern, parameter); });
}

void check_players(const ProgramSpec& spec, Network& network, Reader& reader) {
  check_losses(spec, network.outputs, reader);
  check_trained(spec, network, reader);
}

Network network_of(const ProgramSpec::Player& player, Network network) {
  Graph& graph = network.graph;
  std::vector<ResolvedOutput> outputs;
  std::vector<TensorId> tensors, masks;
  for (const std::size_t i : losses_of(player, network.outputs)) {
    outputs.push_back(std::move(network.outputs[i]));
    tensors.push_back(graph.outputs[i]);
    if (!graph.masks.empty()) masks.push_back(graph.masks[i]);
  }
  network.outputs = std::move(outputs);
  graph.outputs = std::move(tensors);
  graph.masks = std::move(masks);
  for (GraphParameter& parameter : graph.parameters) {
    parameter.trainable = parameter.trainable && trains(player, graph.tensor(parameter.tensor).name);
  }
  remove_unread(graph);
  return network;
}

std::vector<MetricResult> results_of(const std::vector<ProgramSpec::Player>& players,
                                     const std::vector<ResolvedOutput>& outputs) {
  std::vector<MetricResult> results = metric_results(outputs);
  for (const ProgramSpec::Player& player : players) {
    const std::vector<std::size_t> losses = losses_of(player, outputs);
    // A loss with the name of its player is a result already.
    if (outputs.size() > 1 && losses.size() == 1 && label_of(outputs[losses[0]]) == player.name) continue;
    std::vector<double> scales(outputs.size());
    for (const std::size_t i : losses) {
      scales[i] = outputs[i].weight / static_cast<double>(outputs[i].rows_counted);
    }
    const auto sum = [scales](std::span<const double> sums, double count) {
      double loss = 0;
      for (std::size_t i = 0; i < scales.size(); ++i) loss += scales[i] * sums[i];
      return loss / count;
    };
    results.push_back({player.name + "_loss", 0, outputs.size(), sum, 0, true});
  }
  return results;
}

}  // namespace trainctl
