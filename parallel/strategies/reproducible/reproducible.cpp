// Adds the reductions of reproducible mode to a program.
#include "parallel/strategies/table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/program/placements.h"
#include "parallel/strategies/buckets.h"
#include "parallel/strategies/reproducible/exchange.h"
#include "parallel/strategies/reproducible/interleaved.h"
#include "parallel/strategies/reproducible/leaves.h"
#include "parallel/strategies/reproducible/slot_tensors.h"
#include "parallel/strategies/reproducible/tree.h"

namespace trainctl {
namespace {

// Gradients are added in groups of about this many bytes, which fit into the cache of a core.
constexpr std::int64_t group_bytes = 256 << 10;
// Gradients are exchanged in pieces of about this many bytes; a rank without free slots receives one piece at a time.
constexpr std::int64_t piece_bytes = 8 << 20;

class TreeReduction {
 public:
  TreeReduction(Program program, const MeshRank& rank, int compute_streams)
      : program_(std::move(program)),
        rank_(rank),
        replica_(rank.along(MeshAxis::data)),
        replicas_(rank.size(MeshAxis::data)) {
    // Stages of a pipeline wait for each other in every micro-batch.
    max_streams_ = rank.size(MeshAxis::pipeline) == 1 ? compute_streams : 1;
    program_.streams = streams_for(program_.shards.present);
    // A smaller batch has the slots of a full batch, to receive the sums of the other replicas in them.
    program_.flat.gradient_slots =
        std::max({1, slots_for(program_.shards.present), slots_for(program_.shards.shards.count)});
    program_.slots = std::max(program_.slots, program_.streams);
    for (const FlatEntry& entry : program_.flat.parameters) {
      if (entry.gradient != no_tensor) gradients_.push_back(entry.gradient);
    }
    if (replicas_ > 1) pad_sums(program_, replicas_);
    for (const FlatTensor& sum : program_.flat.reduced) sums_.push_back(sum.tensor);
    flat_ = gradients_;
    flat_.insert(flat_.end(), sums_.begin(), sums_.end());
    groups_ = cut(group_bytes);
    pieces_ = cut(piece_bytes);
  }

  Program run() {
    std::vector<LeafSum> sums = program_.streams == 1 ? add_in_turn() : add_in_parallel();
    if (replicas_ > 1) exchange(std::move(sums));
    program_.flat.sums_are_reduced = true;
    return std::move(program_);
  }

 private:
  // Divides the gradients into groups of about `bytes` bytes; the last one also contains the sums.
  std::vector<std::vector<TensorId>> cut(std::int64_t bytes) const {
    std::vector<std::vector<TensorId>> groups = gradient_buckets(program_.flat, bytes, bytes);
    if (groups.empty()) groups.emplace_back();
    groups.back().insert(groups.back().end(), sums_.begin(), sums_.end());
    return groups;
  }

  // Returns this replica's row of a batch of `present` shards.
  LeafRange row_of(int present) const { return program_.shards.shards.row_of(replica_, replicas_, present); }
  int streams_for(int present) const { return std::clamp(row_of(present).count(), 1, max_streams_); }
  int slots_for(int present) const {
    const int streams = streams_for(present);
    return streams == 1 ? sums_of_leaves(row_of(present), present).slots
                        : sums_of_streams(row_of(present), present, streams).slots;
  }

  // With one stream: adds each leaf to the sums of previous leaves within its backward pass.
  std::vector<LeafSum> add_in_turn() {
    const int present = program_.shards.present;
    LeafSums own = sums_of_leaves(row_of(present), present);
    add_leaves(own.steps);
    return std::move(own.sums);
  }

  // With several streams: the streams compute the leaves of a round, one each, and then its sums, each stream for some
  // of the groups.
  std::vector<LeafSum> add_in_parallel() {
    const int present = program_.shards.present;
    StreamSums own = sums_of_streams(row_of(present), present, program_.streams);
    std::vector<LeafStep> steps;
    for (const int slot : own.leaf_slots) steps.push_back({slot, {}, slot});
    add_leaves(steps);
    const std::vector<ScheduleItem> passes = std::exchange(program_.schedule, {});
    for (std::size_t round = 0; round < own.computed.size(); ++round) {
      add_round(static_cast<int>(round), passes);
      add_sums(own.computed[round]);
    }
    program_.schedule.push_back(passes.back());  // the update
    program_.schedule.back().waits = true;
    return std::move(own.sums);
  }

  // Schedules the passes of a round, one leaf on each stream.
  void add_round(int round, const std::vector<ScheduleItem>& passes) {
    const std::size_t begin = program_.schedule.size();
    for (int stream = program_.streams - 1; stream >= 0; --stream) {
      for (ScheduleItem item : std::span(passes).first(passes.size() - 1)) {
        if (item.micro_batch != round * program_.streams + stream) continue;
        item.stream = item.slot = stream;
        program_.schedule.push_back(item);
      }
    }
    program_.schedule[begin].waits = true;
  }

  // Schedules the sums of a round, some of the groups on each stream.
  void add_sums(const std::vector<SlotSum>& computed) {
    const std::size_t begin = program_.schedule.size(), count = groups_.size();
    for (int stream = program_.streams - 1; stream >= 0; --stream) {
      const auto bound = [&](int s) { return count * index(program_.streams - s) / index(program_.streams); };
      std::vector<Op> ops;
      for (std::size_t g = bound(stream + 1); g < bound(stream); ++g) {
        for (const SlotSum& sum : computed) ops.push_back(sum_of(g, sum));
      }
      if (ops.empty()) continue;
      program_.schedule.push_back({static_cast<int>(program_.segments.size()), 0, stream, stream});
      program_.segments.push_back({Phase::exchange, {}, std::move(ops)});
    }
    if (program_.schedule.size() > begin) program_.schedule[begin].waits = true;
  }

  Op sum_of(std::size_t number, const SlotSum& sum) {
    std::vector<TensorId> inputs;
    for (int slot : sum.slots) inputs.push_back(group(number, slot));
    return {std::make_shared<TreeSum>(sum.summands), std::move(inputs), {group(number, sum.slot)}, "streams", {}};
  }

  // Assigns each leaf a backward segment that executes its LeafStep.
  void add_leaves(const std::vector<LeafStep>& steps) {
    auto leaf = steps.begin();
    // The segments created from each backward segment.
    std::map<int, std::vector<std::pair<LeafStep, int>>> known;
    for (ScheduleItem& item : program_.schedule) {
      if (program_.segment(item.segment).phase != Phase::backward || leaf == steps.end()) continue;
      const int base = pass_of_leaf(program_, item);
      auto& created = known[base];
      auto found =
          std::find_if(created.begin(), created.end(), [&](const auto& entry) { return entry.first == *leaf; });
      if (found == created.end()) found = created.insert(found, {*leaf, add_segment(base, *leaf)});
      item.segment = found->second;
      ++leaf;
    }
    require(leaf == steps.end(), "a logical shard has no backward pass");
  }

  // Returns the tensor of a group of gradients in a slot.
  TensorId group(std::size_t number, int slot) {
    return slots_.whole(groups_[number], slot, format("group {}", number));
  }

  // Adds a copy of a backward segment that writes to the leaf's slot and computes the sums that the leaf completes.
  int add_segment(int base, const LeafStep& leaf) {
    Segment segment = program_.segment(base);
    std::map<TensorId, TensorId> renamed;
    for (TensorId tensor : flat_) renamed[tensor] = slots_.in_slot(tensor, leaf.leaf_slot);
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
      insert_after(program_, groups, sum, segment);
    }
    program_.segments.push_back(std::move(segment));
    return static_cast<int>(program_.segments.size()) - 1;
  }

  // Adds up the sums of all replicas. If the update is sharded, each replica needs only the sum of its shard of the
  // gradient.
  void exchange(std::vector<LeafSum> own) {
    SumExchange exchange(program_, slots_, rank_, std::move(own));
    ParameterLayout layout = program_.flat;
    layout.assign_offsets(program_.tensors);
    if (layout.shares(Quantity::states)) {
      auto gradient = gradients_.begin();
      for (const FlatBucket& bucket : layout.buckets) {
        exchange.add({gradient, gradient + bucket.entries}, bucket.count, bucket.gradient);
        gradient += bucket.entries;
      }
      exchange.add(sums_, layout.gradient_count - layout.trainable_count, no_tensor);
    } else {
      for (std::size_t p = 0; p < pieces_.size(); ++p) {
        const bool last = p + 1 == pieces_.size();
        const std::int64_t end = last ? layout.gradient_count : layout.gradient_offset(pieces_[p + 1].front());
        exchange.add(pieces_[p], end - layout.gradient_offset(pieces_[p].front()), no_tensor);
      }
    }
    add_exchange(program_, exchange.take());
  }

  Program program_;
  const MeshRank rank_;
  const int replica_, replicas_;
  int max_streams_ = 1;
  std::vector<TensorId> gradients_, sums_;
  std::vector<TensorId> flat_;  // gradients and sums in the order of the layout
  // `flat_`, divided by group_bytes and by piece_bytes.
  std::vector<std::vector<TensorId>> groups_, pieces_;
  SlotTensors slots_{program_};
};

// Outputs that count themselves add the counts of micro-batches, which are the logical shards of one distribution.
void refuse_counts(const Program& program) {
  const int count = program.find(Phase::count);
  if (count < 0) return;
  throw Error(ErrorKind::config, location_of(program, program.segment(count).ops.front()),
              "the losses of several outputs leave out different positions, whose number strategy.reproducible cannot "
              "count before the forward passes of logical shards",
              "leave out `reproducible`, or give all outputs the mask of the same layer");
}

}  // namespace

Program add_in_tree(Program program, const MeshRank& rank, const Strategy& strategy) {
  if (!strategy.options.reproducible || program.find(Phase::update) < 0) return program;
  // The alignment lets pieces of the exchange, which may begin with any gradient, be divided among the replicas.
  // Programs without logical shards need the same layout as programs with logical shards.
  ParameterLayout& flat = program.flat;
  if (!flat.shares(Quantity::states)) flat.alignment = flat_alignment * rank.size(MeshAxis::data);
  if (!program.shards.any()) return program;
  refuse_counts(program);
  if (flat.shares(Quantity::gradients)) return add_interleaved(std::move(program), rank, strategy);
  return TreeReduction(std::move(program), rank, strategy.compute_streams).run();
}

}  // namespace trainctl
