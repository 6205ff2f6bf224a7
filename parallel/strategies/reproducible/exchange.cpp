// The exchange of sums, piece by piece.
#include "parallel/strategies/reproducible/exchange.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"

namespace trainctl {

SumExchange::SumExchange(Program& program, SlotTensors& slots, const MeshRank& rank, std::vector<LeafSum> own)
    : program_(program),
      slots_(slots),
      replica_(rank.along(MeshAxis::data)),
      replicas_(rank.size(MeshAxis::data)),
      own_(std::move(own)) {
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

// A sum of two is the same in either order, and so whoever adds them.
void SumExchange::reduce_two(const std::vector<TensorId>& tensors, std::int64_t count, TensorId own_part) {
  const TensorId both = whole(tensors, count, 0);
  if (own_part == no_tensor) {
    ops_.push_back({std::make_shared<AllReduce>(MeshAxis::data), {both}, {both}, "sums", {}});
    return;
  }
  auto scatter = std::make_shared<ReduceScatter>(MeshAxis::data, replicas_);
  scatter->consumes = true;
  ops_.push_back({std::move(scatter), {both}, {own_part}, "sums", {}});
}

// Memory for what the replica receives in a round.
TensorId SumExchange::received(std::size_t round, const std::vector<TensorId>& tensors, std::int64_t count,
                               std::vector<int>& free_slots) {
  std::string name = format("received {}", round);
  if (free_slots.empty()) return program_.add(std::move(name), {count}, DType::float32, Role::activation);
  const int slot = free_slots.back();
  free_slots.pop_back();
  return slots_.add(std::move(name), count, tensors.front(), slot, 0);
}

void SumExchange::add(const std::vector<TensorId>& tensors, std::int64_t count, TensorId own_part) {
  if (order_.size() == 2 && rounds_ == 1 && replicas_ == 2) return reduce_two(tensors, count, own_part);
  // In a round for which it has no sum, a replica sends what lies in slot 0, and nobody uses it.
  std::vector<int> free_slots;
  for (int slot = 1; slot < program_.flat.gradient_slots; ++slot) {
    if (std::ranges::find(own_, slot, &LeafSum::slot) == own_.end()) free_slots.push_back(slot);
  }
  std::vector<TensorId> inputs;
  for (std::size_t round = 0; round < rounds_; ++round) {
    const int sent = round < own_.size() ? own_[round].slot : 0;
    inputs.push_back(received(round, tensors, count, free_slots));
    ops_.push_back({std::make_shared<AllToAll>(MeshAxis::data, replicas_),
                    {whole(tensors, count, sent)},
                    {inputs.back()},
                    "sums",
                    {}});
    if (round < own_.size() && (sent > 0 || own_.size() == rounds_)) free_slots.push_back(sent);
  }
  const bool gathers = own_part == no_tensor;
  if (gathers) {
    const std::int64_t part = count / replicas_;
    own_part = slots_.add("own part", part, tensors.front(), 0, replica_ * part);
  }
  ops_.push_back({std::make_shared<TreeSum>(order_, replicas_, true), std::move(inputs), {own_part}, "sums", {}});
  if (!gathers) return;
  ops_.push_back(
      {std::make_shared<AllGather>(MeshAxis::data, replicas_), {own_part}, {whole(tensors, count, 0)}, "sums", {}});
}

}  // namespace trainctl
