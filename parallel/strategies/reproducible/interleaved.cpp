// Adds the round-by-round reduction of interleaved leaves to a program.
#include "parallel/strategies/reproducible/interleaved.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "parallel/strategies/buckets.h"
#include "parallel/strategies/reproducible/leaves.h"
#include "parallel/strategies/reproducible/tree.h"

namespace trainctl {
namespace {

using Round = std::vector<SlotSum>;

// The tensors that a leaf's backward pass writes and receives, in the slot: buckets of gradients, then the sums. All
// rounds use the same tensors, so that they share memory.
struct LeafTensors {
  std::map<TensorId, TensorId> renamed;  // tensor that replaces a tensor of the program; key: the replaced tensor
  std::vector<TensorId> wholes;
  std::vector<TensorId> received;
};

class InterleavedReduction {
 public:
  InterleavedReduction(Program program, const MeshRank& rank, bool overlap)
      : program_(std::move(program)),
        replica_(rank.along(MeshAxis::data)),
        replicas_(rank.size(MeshAxis::data)),
        overlap_(overlap) {
    const std::int64_t all = pad_sums(program_, replicas_);
    layout_ = program_.flat;
    layout_.assign_offsets(program_.tensors);
    sum_count_ = all - layout_.trainable_count;
    for (const FlatTensor& sum : layout_.reduced) sums_.push_back(sum.tensor);
    for (const FlatBucket& bucket : layout_.buckets) shards_.push_back({bucket.gradient});
    shards_.emplace_back();  // shards of the sums, which are added at their first use
  }

  Program run() {
    const std::vector<Round> rounds = sums_of_rounds(program_.shards.present, replicas_);
    for (const Round& round : rounds) {
      for (const SlotSum& sum : round) {
        program_.flat.gradient_slots = std::max(program_.flat.gradient_slots, sum.slot + 1);
      }
    }
    auto round = rounds.begin();
    std::map<int, std::vector<std::pair<Round, int>>> known;  // segments created from a pass; key: the pass
    for (ScheduleItem& item : program_.schedule) {
      if (program_.segment(item.segment).phase != Phase::backward) continue;
      require(round != rounds.end(), "there are more backward passes than rounds");
      const int pass = pass_of_leaf(program_, item);
      auto& created = known[pass];
      auto found =
          std::find_if(created.begin(), created.end(), [&](const auto& entry) { return entry.first == *round; });
      if (found == created.end()) {
        const int segment = add_segment(pass, program_.is_rest(item), *round);
        found = created.insert(created.end(), {*round, segment});
      }
      item.segment = found->second;
      ++round;
    }
    require(round == rounds.end(), "a round has no backward pass");
    const TensorId sums = add_bucket(program_, sums_, layout_.buckets.size());
    add_exchange(
        program_,
        {{std::make_shared<AllGather>(MeshAxis::data, replicas_), {shard(shards_.size() - 1, 0)}, {sums}, "sums", {}}});
    program_.flat.sums_are_reduced = true;
    return std::move(program_);
  }

 private:
  // Copies a tensor into the slot, `offset` elements after the start of `whole`.
  TensorId copy_into(TensorId whole, TensorId tensor, std::int64_t offset, std::string_view suffix) {
    Tensor copy = program_.tensor(tensor);
    copy.name += suffix;
    copy.role = Role::activation;
    copy.alias_of = whole;
    copy.alias_offset = offset;
    program_.tensors.push_back(std::move(copy));
    return static_cast<TensorId>(program_.tensors.size() - 1);
  }

  // Returns the tensors of a leaf. The smaller last leaf has its own tensors, so that no lifetime spans its forward
  // pass.
  LeafTensors& tensors_of(bool rest) {
    LeafTensors& leaf = leaves_[rest ? 1 : 0];
    if (!leaf.wholes.empty()) return leaf;
    const std::string_view suffix = rest ? "/rest" : "/leaf";
    for (const FlatBucket& bucket : layout_.buckets) {
      const TensorId of_program = program_.tensor(gradients_of(bucket).front()).alias_of;
      leaf.wholes.push_back(rest ? bucket_of_rest(leaf, bucket, of_program) : of_program);
    }
    const TensorId sums = program_.add(format("sums{}", suffix), {sum_count_}, DType::float32, Role::activation);
    for (const FlatTensor& sum : layout_.reduced) {
      rename_into(leaf, sums, sum.tensor, sum.offset - layout_.trainable_count, suffix);
    }
    leaf.wholes.push_back(sums);
    for (const TensorId whole : leaf.wholes) {
      const Tensor sent = program_.tensor(whole);
      leaf.received.push_back(program_.add(sent.name + "/received", sent.type.shape, DType::float32, Role::activation));
    }
    return leaf;
  }

  // Returns the gradients of a bucket in order.
  std::vector<TensorId> gradients_of(const FlatBucket& bucket) const {
    std::vector<TensorId> gradients;
    for (const FlatEntry& entry : layout_.parameters) {
      const bool inside = entry.offset >= bucket.offset && entry.offset < bucket.offset + bucket.count;
      if (entry.gradient != no_tensor && inside) gradients.push_back(entry.gradient);
    }
    return gradients;
  }

  TensorId bucket_of_rest(LeafTensors& leaf, const FlatBucket& bucket, TensorId of_program) {
    Tensor copy = program_.tensor(of_program);
    copy.name += "/rest";
    copy.members.clear();
    program_.tensors.push_back(std::move(copy));
    const auto whole = static_cast<TensorId>(program_.tensors.size() - 1);
    for (const TensorId gradient : gradients_of(bucket)) {
      rename_into(leaf, whole, gradient, program_.tensor(gradient).alias_offset, "/rest");
    }
    return whole;
  }

  void rename_into(LeafTensors& leaf, TensorId whole, TensorId tensor, std::int64_t offset, std::string_view suffix) {
    const TensorId copy = copy_into(whole, tensor, offset, suffix);
    leaf.renamed[tensor] = copy;
    program_.tensors[static_cast<std::size_t>(whole)].members.push_back(copy);
  }

  // Returns this replica's shard of a bucket, or of the sums, in a slot.
  TensorId shard(std::size_t bucket, int slot) {
    std::vector<TensorId>& shards = shards_[bucket];
    const bool of_sums = bucket + 1 == shards_.size();
    while (static_cast<int>(shards.size()) <= slot) {
      const int next = static_cast<int>(shards.size());
      const std::int64_t count = of_sums ? sum_count_ / replicas_ : program_.tensor(shards.front()).type.shape.count();
      shards.push_back(program_.add(format("{}/part in slot {}", name_of_bucket(bucket), next), {count}, DType::float32,
                                    Role::gradient));
      program_.flat.in_slots.push_back(
          {shards.back(), of_sums ? sums_.front() : first_gradient(bucket), next, of_sums ? replica_ * count : 0});
    }
    return shards[static_cast<std::size_t>(slot)];
  }

  // Returns a name that is equal on all ranks, even if one has the smaller leaf of a round.
  std::string name_of_bucket(std::size_t bucket) const {
    return bucket + 1 == shards_.size() ? "sums" : format("bucket {}", bucket);
  }

  // Returns the first gradient of a bucket.
  TensorId first_gradient(std::size_t bucket) const { return gradients_of(layout_.buckets[bucket]).front(); }

  // Adds a copy of a leaf's backward pass that exchanges the gradients and computes the sums of a round.
  int add_segment(int pass, bool rest, const Round& round) {
    Segment segment = program_.segment(pass);
    const LeafTensors& leaf = tensors_of(rest);
    rename(leaf.renamed, segment);
    const std::vector<TensorId>& received = leaf.received;
    const auto begin = [&](std::size_t b, std::vector<Op>& ops) {
      auto exchange = std::make_shared<AllToAll>(MeshAxis::data, replicas_, overlap_);
      ops.push_back({std::move(exchange), {leaf.wholes[b]}, {received[b]}, name_of_bucket(b), {}});
    };
    const auto end = [&](std::size_t b, std::vector<Op>& ops) {
      if (overlap_) ops.push_back(wait_for(program_, received[b]));
      for (const SlotSum& sum : round) {
        std::vector<TensorId> inputs;
        for (int slot : sum.slots) inputs.push_back(shard(b, slot));
        inputs.push_back(received[b]);
        ops.push_back({std::make_shared<TreeSum>(sum.summands, replicas_, true),
                       std::move(inputs),
                       {shard(b, sum.slot)},
                       name_of_bucket(b),
                       {}});
      }
    };
    const auto reduction = [&](std::size_t b) {
      std::vector<Op> ops;
      if (overlap_ && b > 0) end(b - 1, ops);
      begin(b, ops);
      if (!overlap_ || b + 1 == leaf.wholes.size()) end(b, ops);
      return ops;
    };
    // The sums are exchanged last although they are complete before the last gradient: pipeline stages without outputs
    // do not write any.
    const std::vector<TensorId> gradients(leaf.wholes.begin(), leaf.wholes.end() - 1);
    insert_after(program_, gradients, reduction, segment);
    std::ranges::move(reduction(gradients.size()), std::back_inserter(segment.ops));
    program_.segments.push_back(std::move(segment));
    return static_cast<int>(program_.segments.size()) - 1;
  }

  Program program_;
  const int replica_, replicas_;
  const bool overlap_;
  ParameterLayout layout_;  // layout with assigned offsets
  std::int64_t sum_count_ = 0;
  std::vector<TensorId> sums_;
  LeafTensors leaves_[2];                      // tensors of whole logical shards, and of the smaller last one
  std::vector<std::vector<TensorId>> shards_;  // shards in each slot, for each bucket; the last bucket has the sums
};

}  // namespace

Program add_interleaved(Program program, const MeshRank& rank, const Strategy& strategy) {
  return InterleavedReduction(std::move(program), rank, strategy.overlap).run();
}

}  // namespace trainctl
