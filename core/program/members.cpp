// Finds the members of buckets, regions and shards.
#include "core/program/members.h"

#include <span>
#include <utility>

#include "core/base/format.h"

namespace trainctl {

Members::Members(const Program& program) : program_(program) {
  for (const Tensor& tensor : program.tensors) members_.push_back(tensor.members);
  const auto fill = [&](TensorId region, auto list) {
    if (region != no_tensor && of(region).empty()) list(members_[static_cast<std::size_t>(region)]);
  };
  const auto reduced = [&](std::vector<TensorId>& list) {
    for (const FlatTensor& sum : program.flat.reduced) list.push_back(sum.tensor);
  };
  fill(program.step.gradients, [&](std::vector<TensorId>& list) {
    for (const FlatEntry& entry : program.flat.parameters) {
      if (entry.gradient != no_tensor) list.push_back(entry.gradient);
    }
    reduced(list);
  });
  fill(program.step.sums, reduced);
  fill(program.step.parameters, [&](std::vector<TensorId>& list) {
    for (const FlatEntry& entry : program.flat.parameters) list.push_back(entry.parameter);
  });

  auto entry = program.flat.parameters.begin();
  if (program.flat.by_player) {
    for (const FlatBucket& bucket : program.flat.buckets) {
      if (bucket.parameter == no_tensor) continue;
      of_players_.insert({bucket.gradient, bucket.parameter});
      for (const FlatEntry& of : std::span(entry, entry + bucket.entries)) {
        members_[index(bucket.gradient)].push_back(of.gradient);
        members_[index(bucket.parameter)].push_back(of.parameter);
      }
      entry += bucket.entries;
    }
  }
  if (!program.flat.shares(Quantity::states)) return;
  for (const FlatBucket& bucket : program.flat.buckets) {
    const std::span entries(entry, entry + bucket.entries);
    const auto add_parameters = [&](TensorId shard) {
      if (shard == no_tensor) return;
      constexpr auto data = static_cast<std::size_t>(MeshAxis::data);
      for (const FlatEntry& of : entries) {
        Tensor member = program.tensor(of.parameter);
        member.placements.resize(mesh_axes, replicated);
        const std::vector<Placement>& placements = program.tensor(shard).placements;
        member.placements[data] = placements.empty() ? split_along(0) : placements[data];
        add(shard, std::move(member));
      }
    };
    add_parameters(bucket.parameter);
    add_parameters(bucket.gradient);
    for (TensorId state : bucket.states) add_parameters(state);
    add_parameters(bucket.average);
    entry += bucket.entries;
  }
}

const Tensor& Members::tensor(TensorId id) const {
  const auto number = index(id), own = program_.tensors.size();
  return number < own ? program_.tensors[number] : made_[number - own];
}

void Members::add_like(TensorId tensor_id, TensorId like) {
  for (std::size_t m = 0; m < of(like).size(); ++m) {
    Tensor member = tensor(of(like)[m]);
    member.placements.clear();
    add(tensor_id, std::move(member));
  }
}

void Members::add(TensorId tensor_id, Tensor member) {
  member.name = format("{} in {}", member.name, tensor(tensor_id).name);
  member.role = tensor(tensor_id).role;
  if (member.type.shape.rank() == 0) member.type.shape = {1};  // a shard may lack the only value
  made_.push_back(std::move(member));
  const auto id = static_cast<TensorId>(members_.size());
  members_.emplace_back();
  members_[static_cast<std::size_t>(tensor_id)].push_back(id);
}

}  // namespace trainctl
