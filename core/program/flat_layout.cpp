// Where parameters, gradients, running statistics and sums lie in their flat regions.
#include "core/program/flat_layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace trainctl {
namespace {

// The first offset at or behind `offset` at which a parameter may begin, in elements.
std::int64_t aligned(const FlatLayout& layout, std::int64_t offset) { return round_up(offset, layout.sharding.grain); }

// The parameters, ordered by the last op that writes their gradient.
std::vector<TensorId> backward_order(const Backward& backward) {
  std::map<TensorId, TensorId> parameter_of;
  for (const auto& [parameter, gradient] : backward.parameter_gradients) parameter_of[gradient] = parameter;
  std::vector<TensorId> order;  // from the last one to the first
  for (auto op = backward.ops.rbegin(); op != backward.ops.rend(); ++op) {
    for (auto output = op->outputs.rbegin(); output != op->outputs.rend(); ++output) {
      const auto found = parameter_of.find(*output);
      if (found == parameter_of.end()) continue;
      order.push_back(found->second);
      parameter_of.erase(found);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

// Moves parameters that several stages hold behind all others: those of the same stages side by side, by name.
void order_shared(std::vector<FlatEntry>& entries, const Graph& graph) {
  const auto first = std::stable_partition(entries.begin(), entries.end(),
                                           [](const FlatEntry& entry) { return entry.stages.empty(); });
  std::sort(first, entries.end(), [&](const FlatEntry& a, const FlatEntry& b) {
    return std::tie(a.stages, graph.tensor(a.parameter).name) < std::tie(b.stages, graph.tensor(b.parameter).name);
  });
}

}  // namespace

FlatLayout order_flat(const Graph& graph, const Backward& backward, std::vector<TensorId> reduced,
                      const std::function<bool(const GraphParameter&)>& decays) {
  std::map<TensorId, const GraphParameter*> parameters;
  for (const GraphParameter& parameter : graph.parameters) parameters[parameter.tensor] = &parameter;

  FlatLayout layout;
  const auto append = [&](TensorId parameter, TensorId gradient) {
    const std::int64_t count = graph.tensor(parameter).type.shape.count();
    const GraphParameter& of_graph = *parameters.at(parameter);
    layout.parameters.push_back({parameter, gradient, 0, count, decays(of_graph), of_graph.stages});
  };
  for (TensorId parameter : backward_order(backward)) append(parameter, backward.parameter_gradients.at(parameter));
  order_shared(layout.parameters, graph);
  for (const GraphParameter& parameter : graph.parameters) {
    if (!backward.parameter_gradients.contains(parameter.tensor)) append(parameter.tensor, no_tensor);
  }
  std::set<TensorId> moving;
  for (const GraphStatistic& statistic : graph.statistics) {
    if (moving.insert(statistic.moving).second) layout.statistics.push_back({statistic.moving, 0});
  }
  for (TensorId sum : reduced) layout.reduced.push_back({sum, 0});
  return layout;
}

void keep_states(FlatLayout& layout, const OptimizerRule& rule, const std::vector<Tensor>& tensors) {
  layout.states = state_names(rule);
  layout.factored = is_factored(rule);
  if (!layout.factored) return;
  for (FlatEntry& entry : layout.parameters) {
    if (entry.gradient == no_tensor) continue;
    entry.factors = Factors(tensors[static_cast<std::size_t>(entry.parameter)].type.shape);
    entry.factors.offset = layout.factor_count;
    layout.factor_count = round_up(layout.factor_count + entry.factors.count(), flat_alignment);
  }
}

void assign_offsets(FlatLayout& layout, const std::vector<Tensor>& tensors) {
  const auto count = [&](TensorId id) { return tensors[static_cast<std::size_t>(id)].type.shape.count(); };
  layout.parameter_count = layout.trainable_count = layout.statistic_count = 0;
  auto bucket = layout.sharding.buckets.begin();
  int in_bucket = 0;
  for (FlatEntry& entry : layout.parameters) {
    entry.offset = layout.parameter_count;
    layout.parameter_count = aligned(layout, checked_add(layout.parameter_count, entry.count));
    if (bucket != layout.sharding.buckets.end()) {
      if (in_bucket++ == 0) bucket->offset = entry.offset;
      if (in_bucket == bucket->entries) {
        layout.parameter_count = round_up(layout.parameter_count, layout.sharding.grain * layout.sharding.shards);
        bucket->count = layout.parameter_count - bucket->offset;
        ++bucket;
        in_bucket = 0;
      }
    }
    if (entry.gradient != no_tensor) layout.trainable_count = layout.parameter_count;
  }
  for (FlatPlace& place : layout.statistics) {
    place.offset = layout.statistic_count;
    layout.statistic_count = checked_add(layout.statistic_count, count(place.tensor));
  }
  layout.gradient_count = layout.trainable_count;
  for (FlatPlace& place : layout.reduced) {
    place.offset = layout.gradient_count;
    layout.gradient_count = checked_add(layout.gradient_count, count(place.tensor));
  }
}

FlatLayout same_layout(const Program& training, const std::vector<Tensor>& tensors) {
  std::map<std::string_view, TensorId> by_name;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Role role = tensors[i].role;
    if (role == Role::parameter || role == Role::statistic || role == Role::reduced) {
      by_name.emplace(tensors[i].name, static_cast<TensorId>(i));
    }
  }
  const auto find = [&](TensorId id) {
    const auto found = by_name.find(training.tensor(id).name);
    return found == by_name.end() ? no_tensor : found->second;
  };

  FlatLayout layout = training.flat;
  for (FlatEntry& entry : layout.parameters) {
    entry.parameter = find(entry.parameter);
    entry.gradient = no_tensor;
    require(entry.parameter != no_tensor, "programs of a run share their parameters");
    require(tensors[static_cast<std::size_t>(entry.parameter)].type.shape.count() == entry.count,
            "programs of a run have equal parts of their parameters");
  }
  for (FlatPlace& place : layout.statistics) {
    place.tensor = find(place.tensor);
    require(place.tensor != no_tensor, "programs of a run share their running statistics");
  }
  for (FlatPlace& place : layout.reduced) place.tensor = find(place.tensor);
  std::erase_if(layout.reduced, [](const FlatPlace& place) { return place.tensor == no_tensor; });
  for (FlatBucket& bucket : layout.sharding.buckets) {
    bucket.gradient = bucket.parameters = bucket.parameter = bucket.average = no_tensor;
    bucket.states.clear();
  }
  return layout;
}

std::vector<UpdateRange> update_ranges(const FlatLayout& layout, bool by_parameter) {
  std::vector<UpdateRange> ranges;
  for (const FlatEntry& entry : layout.parameters) {
    if (entry.gradient == no_tensor) continue;
    if (layout.factored) {
      ranges.push_back({entry.offset, entry.count, entry.decay, entry.factors});
      continue;
    }
    const bool joins = !by_parameter && !ranges.empty() && ranges.back().decay == entry.decay;
    if (!joins) ranges.push_back({entry.offset, 0, entry.decay});
    ranges.back().count = aligned(layout, entry.offset + entry.count) - ranges.back().offset;
  }
  return ranges;
}

std::vector<UpdateRange> ranges_within(const std::vector<UpdateRange>& ranges, std::int64_t first, std::int64_t end) {
  std::vector<UpdateRange> within;
  for (const UpdateRange& range : ranges) {
    const std::int64_t from = std::max(range.offset, first), to = std::min(range.offset + range.count, end);
    if (from < to) within.push_back({from - first, to - from, range.decay, {}});
  }
  return within;
}

}  // namespace trainctl
