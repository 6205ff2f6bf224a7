// Creates the ops that exchange sums, piece by piece.
#include "parallel/strategies/reproducible/exchange.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"

namespace trainctl {

SumExchange::SumExchange(Program& program, SlotTensors& slots, const MeshRank& rank, std::vector<LeafSum> own)
    : program_(program),
      slots_(slots),
      replica_(rank.along(MeshAxis::data)),
      replicas_(rank.size(MeshAxis::data)),
      layout_(program.flat),
      own_(std::move(own)) {
  layout_.assign_offsets(program.tensors);
  const int present = program.shards.present;
  std::vector<PlacedSum> sums;
  for (int replica = 0; replica < replicas_; ++replica) {
    const LeafSums theirs = sums_of_leaves(program.shards.shards.row_of(replica, replicas_, present), present);
    rounds_ = std::max(rounds_, theirs.sums.size());
    for (std::size_t round = 0; round < theirs.sums.size(); ++round) {
      sums.push_back({theirs.sums[round].leaves, static_cast<int>(round), replica});
    }
  }
  order_ = order_of_sums(sums, present);
}

TensorId SumExchange::whole(const std::vector<TensorId>& tensors, std::int64_t count, int slot) {
  const TensorId whole = slots_.whole(tensors, slot, "sums");
  program_.tensors[static_cast<std::size_t>(whole)].type.shape = {count};
  return whole;
}

// The sum of two summands is the same in either order, so the ordinary reductions can compute it.
void SumExchange::reduce_two(const std::vector<TensorId>& tensors, std::int64_t count, TensorId own_shard) {
  const TensorId both = whole(tensors, count, 0);
  if (own_shard == no_tensor) {
    ops_.push_back({std::make_shared<AllReduce>(MeshAxis::data), {both}, {both}, "sums", {}});
    return;
  }
  auto scatter = std::make_shared<ReduceScatter>(MeshAxis::data, replicas_);
  scatter->consumes = true;
  ops_.push_back({std::move(scatter), {both}, {own_shard}, "sums", {}});
}

// Returns the gaps between consecutive tensors and after the last one.
std::vector<ZeroGaps::Gap> SumExchange::gaps_of(const std::vector<TensorId>& tensors, std::int64_t count) const {
  std::vector<ZeroGaps::Gap> gaps;
  std::int64_t end = 0;
  const auto reach = [&](std::int64_t offset) {
    if (offset > end) gaps.push_back({end, offset - end});
  };
  for (const TensorId tensor : tensors) {
    const std::int64_t offset = layout_.gradient_offset(tensor) - layout_.gradient_offset(tensors.front());
    reach(offset);
    end = offset + program_.tensor(tensor).type.shape.count();
  }
  reach(count);
  return gaps;
}

// Adds the tensor that the replica receives in a round, in a slot or in the arena.
TensorId SumExchange::received(std::size_t round, const std::vector<TensorId>& tensors, std::int64_t count,
                               std::optional<int> slot) {
  std::string name = format("received {}", round);
  if (slot) return slots_.add(std::move(name), count, tensors.front(), *slot, 0);
  return program_.add(std::move(name), {count}, DType::float32, Role::activation);
}

void SumExchange::add(const std::vector<TensorId>& tensors, std::int64_t count, TensorId own_shard) {
  if (order_.size() == 2 && rounds_ == 1 && replicas_ == 2) return reduce_two(tensors, count, own_shard);
  // In a round for which a replica has no sum, it sends slot 0, which no replica uses.
  std::vector<int> free_slots;
  for (int slot = 1; slot < program_.flat.gradient_slots; ++slot) {
    if (std::ranges::find(own_, slot, &LeafSum::slot) == own_.end()) free_slots.push_back(slot);
  }
  std::vector<TensorId> inputs;
  std::map<int, TensorId> in_slot;  // received tensors; key: the slot
  for (std::size_t round = 0; round < rounds_; ++round) {
    std::optional<int> slot;
    if (!free_slots.empty()) {
      slot = free_slots.back();
      free_slots.pop_back();
    }
    inputs.push_back(received(round, tensors, count, slot));
    if (slot) in_slot[*slot] = inputs.back();
    const int sent = round < own_.size() ? own_[round].slot : 0;
    ops_.push_back({std::make_shared<AllToAll>(MeshAxis::data, replicas_),
                    {whole(tensors, count, sent)},
                    {inputs.back()},
                    "sums",
                    {}});
    if (round < own_.size() && (sent > 0 || own_.size() == rounds_)) free_slots.push_back(sent);
  }
  const bool gathers = own_shard == no_tensor;
  if (gathers) {
    const std::int64_t shard_count = count / replicas_;
    own_shard = slots_.add("own part", shard_count, tensors.front(), 0, replica_ * shard_count);
  }
  ops_.push_back({std::make_shared<TreeSum>(order_, replicas_, true), std::move(inputs), {own_shard}, "sums", {}});
  if (gathers) {
    const TensorId gathered = whole(tensors, count, 0);
    ops_.push_back({std::make_shared<AllGather>(MeshAxis::data, replicas_), {own_shard}, {gathered}, "sums", {}});
    in_slot.erase(0);  // slot 0 now holds the sum
  }
  const std::vector<ZeroGaps::Gap> gaps = gaps_of(tensors, count);
  for (const auto& [slot, used] : in_slot) {
    if (!gaps.empty()) ops_.push_back({std::make_shared<ZeroGaps>(gaps), {used}, {used}, "sums", {}});
  }
}

}  // namespace trainctl
