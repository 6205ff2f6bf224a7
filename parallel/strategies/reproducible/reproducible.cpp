// Reproducible mode as a function from program to program.
#include "parallel/strategies/reproducible/reproducible.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/program/flat_layout.h"
#include "parallel/strategies/buckets.h"
#include "parallel/strategies/reproducible/dealt.h"
#include "parallel/strategies/reproducible/leaves.h"
#include "parallel/strategies/reproducible/tree.h"

namespace trainctl {
namespace {

// Gradients are added in groups of about this many bytes, which the cache of a core holds.
constexpr std::int64_t group_bytes = 256 << 10;
// They are exchanged in pieces of about this many bytes, of which a rank receives one at a time.
constexpr std::int64_t piece_bytes = 8 << 20;

std::size_t index(int number) { return static_cast<std::size_t>(number); }

class TreeReduction {
 public:
  TreeReduction(Program program, const MeshRank& rank, int compute_streams)
      : program_(std::move(program)), replica_(rank.along(MeshAxis::data)), replicas_(rank.size(MeshAxis::data)) {
    // Stages of a pipeline wait for each other in every micro-batch.
    const int leaves = row_of(replica_).count();
    if (rank.size(MeshAxis::pipeline) == 1) program_.streams = std::clamp(leaves, 1, compute_streams);
    program_.slots = std::max(program_.slots, program_.streams);
    for (const FlatEntry& entry : program_.flat.parameters) {
      if (entry.gradient != no_tensor) gradients_.push_back(entry.gradient);
    }
    if (replicas_ > 1) pad_sums(program_, replicas_);
    for (const FlatPlace& place : program_.flat.reduced) sums_.push_back(place.tensor);
    flat_ = gradients_;
    flat_.insert(flat_.end(), sums_.begin(), sums_.end());
    groups_ = cut(group_bytes);
    pieces_ = cut(piece_bytes);
  }

  Program run() {
    std::vector<LeafStep> steps;
    std::vector<int> stream_of;  // by leaf
    std::vector<LeafSum> sums;
    int slots = 0;
    for (int stream = 0; stream < program_.streams; ++stream) {
      const LeafSums own = sums_of_stream(stream);
      for (const LeafStep& step : own.steps) steps.push_back(behind(step, slots));
      stream_of.resize(steps.size(), stream);
      for (const LeafSum& sum : own.sums) sums.push_back({sum.leaves, sum.slot + slots});
      slots += own.slots;
    }
    program_.flat.gradient_slots = std::max(slots, 1);
    add_leaves(steps);
    put_in_streams(stream_of);
    const JoinedSums joined = join_sums(sums, program_.shards.present);
    std::vector<Op> ops;
    for (const SlotSum& sum : joined.formed) join(sum, ops);
    if (replicas_ > 1) exchange(joined.sums, ops);
    if (!ops.empty()) add_exchange(program_, std::move(ops));
    program_.flat.sums_are_reduced = true;
    return std::move(program_);
  }

 private:
  // The gradients in groups of about so many bytes, the sums in the last one.
  std::vector<std::vector<TensorId>> cut(std::int64_t bytes) const {
    std::vector<std::vector<TensorId>> groups = gradient_buckets(program_.flat, bytes, bytes);
    if (groups.empty()) groups.emplace_back();
    groups.back().insert(groups.back().end(), sums_.begin(), sums_.end());
    return groups;
  }

  LeafRange row_of(int replica) const {
    return program_.shards.shards.row_of(replica, replicas_, program_.shards.present);
  }

  // Of the part of this replica's row that a compute stream computes.
  LeafSums sums_of_stream(int stream) const {
    const LeafRange row = row_of(replica_);
    const auto begin = [&](int s) { return row.first + row.count() * s / program_.streams; };
    return sums_of_leaves({begin(stream), begin(stream + 1)}, program_.shards.present);
  }

  // The step in slots of its stream's own.
  static LeafStep behind(LeafStep step, int slots) {
    step.leaf_slot += slots;
    step.sum_slot += slots;
    for (int& slot : step.summed) slot += slots;
    return step;
  }

  // Gives each leaf a backward segment that does its step.
  void add_leaves(const std::vector<LeafStep>& steps) {
    auto leaf = steps.begin();
    std::map<int, std::vector<std::pair<LeafStep, int>>> known;  // by segment: what was made of it
    for (ScheduleItem& item : program_.schedule) {
      if (program_.segment(item.segment).phase != Phase::backward || leaf == steps.end()) continue;
      const int base = pass_of_leaf(program_, item);
      auto& made = known[base];
      auto found = std::find_if(made.begin(), made.end(), [&](const auto& entry) { return entry.first == *leaf; });
      if (found == made.end()) found = made.insert(found, {*leaf, add_segment(base, *leaf)});
      item.segment = found->second;
      ++leaf;
    }
    require(leaf == steps.end(), "each logical shard has a backward pass");
  }

  void put_in_streams(const std::vector<int>& stream_of) {
    if (program_.streams == 1) return;
    const auto passes = std::span(program_.schedule).first(program_.schedule.size() - 1);  // the update is the last
    for (ScheduleItem& item : passes) item.stream = item.slot = stream_of[index(item.micro_batch)];
    std::ranges::stable_sort(passes, std::greater(), &ScheduleItem::stream);
  }

  // Adds up what streams have of one sum, group by group.
  void join(const SlotSum& sum, std::vector<Op>& ops) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      std::vector<TensorId> inputs;
      for (int slot : sum.slots) inputs.push_back(group(g, slot));
      ops.push_back({std::make_shared<TreeSum>(sum.summands), std::move(inputs), {group(g, sum.slot)}, "streams", {}});
    }
  }

  // The tensor that lies in a slot as this one lies in slot 0.
  TensorId in_slot(TensorId tensor, int slot) {
    if (slot == 0) return tensor;
    const auto [entry, added] = in_slot_.try_emplace({tensor, slot}, no_tensor);
    if (!added) return entry->second;
    Tensor copy = program_.tensor(tensor);
    copy.name += format("/slot {}", slot);
    program_.tensors.push_back(std::move(copy));
    entry->second = static_cast<TensorId>(program_.tensors.size() - 1);
    program_.flat.in_slots.push_back({entry->second, tensor, slot, 0});
    return entry->second;
  }

  std::vector<TensorId> in_slot(std::vector<TensorId> tensors, int slot) {
    for (TensorId& tensor : tensors) tensor = in_slot(tensor, slot);
    return tensors;
  }

  // A group of gradients in a slot.
  TensorId group(std::size_t number, int slot) {
    const auto [entry, added] = group_.try_emplace({number, slot}, no_tensor);
    if (added) {
      entry->second = add_bucket(program_, in_slot(groups_[number], slot), number);
      program_.tensors.back().name = format("group {}/slot {}", number, slot);
    }
    return entry->second;
  }

  // Gradients or sums, or all of them, that lie one behind the other, in a slot.
  TensorId whole(const std::vector<TensorId>& tensors, int slot) {
    const auto [entry, added] = whole_.try_emplace({tensors.front(), slot}, no_tensor);
    if (added) {
      entry->second = add_bucket(program_, in_slot(tensors, slot), 0);
      program_.tensors.back().name = format("{}/slot {}", tensors == sums_ ? "sums" : "gradients", slot);
    }
    return entry->second;
  }

  // Adds a copy of a backward segment that writes into the leaf's slot and adds what the leaf completes.
  int add_segment(int base, const LeafStep& leaf) {
    Segment segment = program_.segment(base);
    std::map<TensorId, TensorId> renamed;
    for (TensorId tensor : flat_) renamed[tensor] = in_slot(tensor, leaf.leaf_slot);
    rename(renamed, segment);
    if (!leaf.summed.empty()) {
      std::vector<TensorId> groups;
      for (std::size_t g = 0; g < groups_.size(); ++g) groups.push_back(group(g, leaf.leaf_slot));
      // All additions follow the last summand: the leaf is added to the smallest sum first.
      std::vector<Summand> summands;
      for (std::size_t i = 0; i <= leaf.summed.size(); ++i) summands.push_back({static_cast<int>(i), 0, 0});
      summands.back().merges = static_cast<int>(leaf.summed.size());
      const auto sum = [&](std::size_t g) {
        std::vector<TensorId> inputs;
        for (int slot : leaf.summed) inputs.push_back(group(g, slot));
        inputs.push_back(groups[g]);
        return std::vector<Op>{{std::make_shared<TreeSum>(summands),
                                std::move(inputs),
                                {group(g, leaf.sum_slot)},
                                program_.tensor(groups[g]).name,
                                {}}};
      };
      insert_behind(program_, groups, sum, segment);
    }
    program_.segments.push_back(std::move(segment));
    return static_cast<int>(program_.segments.size()) - 1;
  }

  // Adds the sums of all replicas. Where they share the update, each needs the sum of its part of the gradient alone.
  void exchange(const std::vector<LeafSum>& own, std::vector<Op>& ops) {
    FlatLayout layout = program_.flat;
    assign_offsets(layout, program_.tensors);
    const std::vector<FlatBucket>& buckets = layout.sharding.buckets;
    auto gradient = gradients_.begin();
    for (const FlatBucket& bucket : buckets) {
      const std::vector<TensorId> members(gradient, gradient + bucket.entries);
      exchange(own, members, bucket.count, bucket.gradient, ops);
      gradient += bucket.entries;
    }
    if (!buckets.empty()) {
      return exchange(own, sums_, layout.gradient_count - layout.trainable_count, no_tensor, ops);
    }
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      const bool last = p + 1 == pieces_.size();
      const std::int64_t end = last ? layout.gradient_count : layout.gradient_offset(pieces_[p + 1].front());
      exchange(own, pieces_[p], end - layout.gradient_offset(pieces_[p].front()), no_tensor, ops);
    }
  }

  // Adds up `count` elements in which the tensors lie one behind the other. Into `own_part`, this replica's part of
  // them, or with no_tensor into the tensors themselves.
  void exchange(const std::vector<LeafSum>& own, const std::vector<TensorId>& tensors, std::int64_t count,
                TensorId own_part, std::vector<Op>& ops) {
    std::vector<PlacedSum> sums;
    std::size_t rounds = 0;
    for (int replica = 0; replica < replicas_; ++replica) {
      const LeafSums theirs = sums_of_leaves(row_of(replica), program_.shards.present);
      rounds = std::max(rounds, theirs.sums.size());
      for (std::size_t i = 0; i < theirs.sums.size(); ++i) {
        sums.push_back({theirs.sums[i].leaves, static_cast<int>(i), replica});
      }
    }
    const std::vector<Summand> order = order_of_sums(sums, program_.shards.present);
    const bool gathers = own_part == no_tensor;
    // A sum of two is the same in either order, and so whoever adds them.
    if (sums.size() == 2 && rounds == 1 && replicas_ == 2) {
      const TensorId both = whole(tensors, 0);
      program_.tensors[index(both)].type.shape = {count};
      if (gathers) return ops.push_back({std::make_shared<AllReduce>(MeshAxis::data), {both}, {both}, "sums", {}});
      auto scatter = std::make_shared<ReduceScatter>(MeshAxis::data, replicas_);
      scatter->consumes = true;
      return ops.push_back({std::move(scatter), {both}, {own_part}, "sums", {}});
    }
    std::vector<TensorId> received;
    for (std::size_t round = 0; round < rounds; ++round) {
      received.push_back(program_.add(format("received {}", round), {count}, DType::float32, Role::activation));
      const TensorId sent = whole(tensors, round < own.size() ? own[round].slot : 0);
      program_.tensors[index(sent)].type.shape = {count};
      ops.push_back({std::make_shared<AllToAll>(MeshAxis::data, replicas_), {sent}, {received.back()}, "sums", {}});
    }
    if (gathers) {
      const std::int64_t part = count / replicas_;
      own_part = program_.add("own part", {part}, DType::float32, Role::gradient);
      program_.flat.in_slots.push_back({own_part, tensors.front(), 0, replica_ * part});
    }
    ops.push_back({std::make_shared<TreeSum>(order, replicas_, true), received, {own_part}, "sums", {}});
    if (!gathers) return;
    ops.push_back(
        {std::make_shared<AllGather>(MeshAxis::data, replicas_), {own_part}, {whole(tensors, 0)}, "sums", {}});
  }

  Program program_;
  const int replica_, replicas_;
  std::vector<TensorId> gradients_, sums_;
  std::vector<TensorId> flat_;                          // both, as they lie one behind the other
  std::vector<std::vector<TensorId>> groups_, pieces_;  // the same, cut into smaller and larger ones
  std::map<std::pair<TensorId, int>, TensorId> in_slot_;
  std::map<std::pair<std::size_t, int>, TensorId> group_;
  std::map<std::pair<TensorId, int>, TensorId> whole_;  // by first tensor and slot
};

}  // namespace

Program add_in_tree(Program program, const MeshRank& rank, const Strategy& strategy) {
  if (!strategy.options.reproducible || program.find(Phase::update) < 0) return program;
  // Pieces of the exchange, which begin with any gradient, are divided among the replicas. Programs without logical
  // shards have the same layout as the others.
  if (Sharding& sharding = program.flat.sharding; !sharding.shares())
    sharding.grain = flat_alignment * rank.size(MeshAxis::data);
  if (!program.shards.any()) return program;
  if (program.flat.sharding.gradients) return add_dealt(std::move(program), rank, strategy);
  return TreeReduction(std::move(program), rank, strategy.compute_streams).run();
}

}  // namespace trainctl
