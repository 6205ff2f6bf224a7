// Computes the layout of parameters: its order, its offsets, and the shards that a rank holds.
#include "core/program/parameter_layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/graph/passes/differentiate.h"

namespace trainctl {
namespace {

// The parameters, ordered by the last op that writes their gradient.
std::vector<TensorId> backward_order(const Backward& backward) {
  std::map<TensorId, TensorId> parameter_of;
  for (const auto& [parameter, gradient] : backward.parameter_gradients) parameter_of[gradient] = parameter;
  std::vector<TensorId> order;  // from the last parameter to the first
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

// Moves parameters that several stages hold after all others: grouped by their stages, then ordered by name.
void order_shared(std::vector<FlatEntry>& entries, const Graph& graph) {
  const auto first = std::stable_partition(entries.begin(), entries.end(),
                                           [](const FlatEntry& entry) { return entry.stages.empty(); });
  std::sort(first, entries.end(), [&](const FlatEntry& a, const FlatEntry& b) {
    return std::tie(a.stages, graph.tensor(a.parameter).name) < std::tie(b.stages, graph.tensor(b.parameter).name);
  });
}

}  // namespace

void ParameterLayout::share(int replicas, int replica, std::set<Quantity> quantities,
                            std::vector<FlatBucket> of_parameters) {
  require(quantities.contains(Quantity::states),
          "replicas that share gradients or parameters must share the optimizer's states");
  replicas_ = replicas;
  replica_ = replica;
  shared_ = std::move(quantities);
  buckets = std::move(of_parameters);
}

std::int64_t ParameterLayout::local_count(Quantity quantity) const {
  if (quantity == Quantity::states && factored) return factor_count;
  return bucket_offset(trainable_count, quantity);
}

std::int64_t ParameterLayout::shard_offset(const FlatBucket& bucket, Quantity quantity) const {
  return shares(quantity) ? bucket_offset(bucket.offset, quantity) : shard_offset(bucket);
}

std::vector<LocalExtent> ParameterLayout::local_extents() const {
  std::vector<LocalExtent> extents;
  auto entry = parameters.begin();
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::int64_t begin = shard_offset(buckets[b]), end = begin + shard_count(buckets[b]);
    for (int i = 0; i < buckets[b].entries; ++i, ++entry) {
      const std::int64_t from = std::max(entry->offset, begin), to = std::min(entry->offset + entry->count, end);
      if (from < to) extents.push_back({&*entry, b, from - begin, from - entry->offset, to - from});
    }
  }
  return extents;
}

std::vector<UpdateRange> ParameterLayout::update_ranges(const FlatBucket& bucket, bool by_parameter) const {
  std::vector<UpdateRange> ranges;  // ranges of all parameters
  for (const FlatEntry& entry : parameters) {
    if (entry.gradient == no_tensor) continue;
    if (factored) {
      ranges.push_back({entry.offset, entry.count, entry.decay, entry.factors});
      continue;
    }
    const bool joins = !by_parameter && !ranges.empty() && ranges.back().decay == entry.decay;
    if (!joins) ranges.push_back({entry.offset, 0, entry.decay, {}, entry.matrix});
    ranges.back().count = round_up(entry.offset + entry.count, alignment) - ranges.back().offset;
  }
  const std::int64_t begin = shard_offset(bucket), end = begin + shard_count(bucket);
  std::vector<UpdateRange> within;
  for (const UpdateRange& range : ranges) {
    const std::int64_t from = std::max(range.offset, begin), to = std::min(range.offset + range.count, end);
    if (from < to) within.push_back({from - begin, to - from, range.decay, range.factors, range.matrix});
  }
  return within;
}

std::int64_t ParameterLayout::kept_of(const FlatEntry& entry) const {
  const auto of_states = std::ssize(states) * (factored ? entry.factors.count() : entry.count);
  return of_states + (averages ? entry.count : 0);
}

const FlatBucket* ParameterLayout::own_bucket() const {
  if (!by_player) return nullptr;
  auto entry = parameters.begin();
  for (const FlatBucket& bucket : buckets) {
    if (bucket.entries > 0 && entry->gradient != no_tensor) return &bucket;
    entry += bucket.entries;
  }
  return nullptr;
}

FlatBucket* ParameterLayout::own_bucket() { return const_cast<FlatBucket*>(std::as_const(*this).own_bucket()); }

std::string ParameterLayout::state_name(const FlatEntry& entry, std::size_t state) const {
  if (!by_player) return states[state];
  const auto holds = [&](const FlatBucket& bucket) {
    return entry.offset >= bucket.offset && entry.offset < bucket.offset + bucket.count;
  };
  const auto bucket = std::ranges::find_if(buckets, holds);
  return bucket != buckets.end() && state < bucket->state_names.size() ? bucket->state_names[state] : "";
}

std::int64_t ParameterLayout::gradient_offset(TensorId tensor) const {
  for (const TensorInSlot& in_slot : in_slots) {
    if (in_slot.tensor == tensor) return gradient_offset(in_slot.like) + in_slot.offset;
  }
  for (const FlatEntry& entry : parameters) {
    if (entry.gradient == tensor) return entry.offset;
  }
  for (const FlatTensor& sum : reduced) {
    if (sum.tensor == tensor) return sum.offset;
  }
  require(false, "a tensor is not in the gradient region");
  return 0;
}

int ParameterLayout::gradient_slot(TensorId tensor) const {
  const auto found = std::ranges::find(in_slots, tensor, &TensorInSlot::tensor);
  return found == in_slots.end() ? 0 : found->slot;
}

void ParameterLayout::keep_states(std::vector<std::string> names, bool with_factors,
                                  const std::vector<Tensor>& tensors) {
  states = std::move(names);
  factored = with_factors;
  if (!factored) return;
  for (FlatEntry& entry : parameters) {
    if (entry.gradient == no_tensor) continue;
    entry.factors = Factors(tensors[static_cast<std::size_t>(entry.parameter)].type.shape);
    entry.factors.offset = factor_count;
    factor_count = round_up(factor_count + entry.factors.count(), flat_alignment);
  }
}

void ParameterLayout::assign_offsets(const std::vector<Tensor>& tensors) {
  const auto count_of = [&](TensorId id) { return tensors[index(id)].type.shape.count(); };
  parameter_count = statistic_count = 0;
  const auto place = [this](FlatEntry& entry) {
    entry.offset = parameter_count;
    parameter_count = round_up(checked_add(parameter_count, entry.count), alignment);
  };
  auto entry = parameters.begin();
  for (FlatBucket& bucket : buckets) {
    bucket.offset = parameter_count;
    for (int i = 0; i < bucket.entries; ++i) place(*entry++);
    parameter_count = round_up(parameter_count, alignment * replicas_);
    bucket.count = parameter_count - bucket.offset;
  }
  trainable_count = parameter_count;
  std::for_each(entry, parameters.end(), place);
  for (FlatTensor& statistic : statistics) {
    statistic.offset = statistic_count;
    statistic_count = checked_add(statistic_count, count_of(statistic.tensor));
  }
  gradient_count = trainable_count;
  for (FlatTensor& sum : reduced) {
    sum.offset = gradient_count;
    gradient_count = checked_add(gradient_count, count_of(sum.tensor));
  }
}

ParameterLayout order_parameters(const Graph& graph, const Backward& backward, std::vector<TensorId> reduced,
                                 const std::function<bool(const GraphParameter&)>& decays) {
  std::map<TensorId, const GraphParameter*> parameters;
  for (const GraphParameter& parameter : graph.parameters) parameters[parameter.tensor] = &parameter;

  ParameterLayout layout;
  const auto append = [&](TensorId parameter, TensorId gradient) {
    const std::int64_t count = graph.tensor(parameter).type.shape.count();
    const GraphParameter& of_graph = *parameters.at(parameter);
    layout.parameters.push_back({parameter, gradient, 0, count, decays(of_graph), of_graph.stages});
  };
  for (TensorId parameter : backward_order(backward)) append(parameter, backward.parameter_gradients.at(parameter));
  order_shared(layout.parameters, graph);
  layout.buckets = {{.entries = static_cast<int>(layout.parameters.size())}};
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

}  // namespace trainctl
