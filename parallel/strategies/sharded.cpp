// Sharding as a function from program to program.
#include "parallel/strategies/sharded.h"

#include <limits>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/training/update.h"
#include "parallel/strategies/buckets.h"
#include "parallel/strategies/gathered.h"
#include "parallel/strategies/rounded.h"

namespace trainctl {
namespace {

class Sharder {
 public:
  Sharder(Program program, const MeshRank& rank, const Strategy& strategy)
      : program_(std::move(program)),
        overlap_(strategy.overlap),
        rounds_(strategy.options.gradient_dtype == GradientDType::bfloat16),
        reproducible_(strategy.options.reproducible.has_value()),
        sharding_(program_.flat.sharding) {
    sharding_.shards = rank.size(MeshAxis::data);
    sharding_.shard = rank.along(MeshAxis::data);
    sharding_.gradients = strategy.options.shard != Shard::optimizer;
    sharding_.parameters = strategy.options.shard == Shard::parameters;
    if (reproducible_) sharding_.grain = norm_chunk;
    // One bucket, where nothing is gained by more: neither time nor memory.
    constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
    const bool cuts = sharding_.gradients || ((overlap_ || rounds_) && !reproducible_);
    for (std::vector<TensorId>& gradients : cuts ? gradient_buckets(program_.flat, strategy.options)
                                                 : gradient_buckets(program_.flat, unlimited, unlimited)) {
      add(std::move(gradients));
    }
  }

  Program run() {
    if (program_.shards.any()) return std::move(program_);  // add_in_tree() reduces
    if (sharding_.gradients) {
      for (Segment& segment : program_.segments) {
        if (segment.phase == Phase::backward) reduce_in(segment);
      }
    } else if (rounds_) {
      reduce_rounded_at_end();
    } else {
      reduce_at_end();
    }
    return std::move(program_);
  }

 private:
  void add(std::vector<TensorId> gradients) {
    FlatBucket bucket;
    bucket.entries = static_cast<int>(gradients.size());
    for (TensorId gradient : gradients) {
      Tensor& tensor = program_.tensors[static_cast<std::size_t>(gradient)];
      bucket.count = round_up(bucket.count, sharding_.grain);
      if (sharding_.gradients) {
        tensor.alias_of = static_cast<TensorId>(program_.tensors.size());  // the bucket, which follows
        tensor.alias_offset = bucket.count;
      }
      bucket.count += tensor.type.shape.count();
    }
    bucket.count = round_up(bucket.count, sharding_.grain * sharding_.shards);
    const std::size_t number = wholes_.size();
    const TensorId whole = add_bucket(program_, std::move(gradients), number);
    Tensor& tensor = program_.tensors[static_cast<std::size_t>(whole)];
    tensor.type.shape = {bucket.count};
    if (sharding_.gradients) tensor.role = Role::activation;
    bucket.gradient = program_.add(format("bucket {}/part", number), {bucket.count / sharding_.shards}, DType::float32,
                                   Role::gradient);
    wholes_.push_back(whole);
    if (rounds_) sums_.emplace_back(program_, whole, sharding_.shards, overlap_);
    sharding_.buckets.push_back(std::move(bucket));
    sharding_.buckets.back().parameter = add_parameter_part(program_, sharding_.buckets.back());
  }

  Op scatter(std::size_t bucket, TensorId part, bool asynchronous) const {
    auto def = std::make_shared<ReduceScatter>(MeshAxis::data, sharding_.shards, asynchronous);
    def->consumes = true;
    return {std::move(def), {wholes_[bucket]}, {part}, program_.tensor(wholes_[bucket]).name, {}};
  }

  // Reduces whole gradients once: with overlap in the last micro-batch all buckets but the last one, which the update
  // reduces before it waits for all of them; without in the update.
  void reduce_at_end() {
    const std::size_t count = wholes_.size();
    if (count == 0) return;
    const bool beside = overlap_ && count > 1;
    const auto part = [this](std::size_t b) { return sharding_.buckets[b].gradient; };
    if (beside) {
      const std::vector<TensorId> early(wholes_.begin(), wholes_.end() - 1);
      const auto reduction = [&](std::size_t b) { return std::vector<Op>{scatter(b, part(b), true)}; };
      Segment& segment = last_backward(program_);
      insert_behind(program_, early, reduction, segment);
    }
    std::vector<Op>& ops = program_.segments[static_cast<std::size_t>(program_.find(Phase::update))].ops;
    for (std::size_t b = beside ? count - 1 : 0; b < count; ++b) ops.push_back(scatter(b, part(b), beside));
    for (std::size_t b = 0; b < count && beside; ++b) ops.push_back(wait_for(program_, part(b)));
  }

  // The same for gradients that travel as bfloat16: with overlap in the last micro-batch, without in the update.
  void reduce_rounded_at_end() {
    const auto reduction = [&](std::size_t b) {
      std::vector<Op> ops;
      if (b > 0) ops = sums_[b - 1].add_into(sharding_.buckets[b - 1].gradient);
      for (Op& op : sums_[b].begin()) ops.push_back(std::move(op));
      return ops;
    };
    Segment& segment =
        overlap_ ? last_backward(program_) : program_.segments[static_cast<std::size_t>(program_.find(Phase::update))];
    insert_behind(program_, wholes_, reduction, segment);
    if (sums_.empty()) return;
    for (Op& op : sums_.back().add_into(sharding_.buckets.back().gradient)) segment.ops.push_back(std::move(op));
  }

  // Reduces each bucket in a micro-batch's backward pass. With overlap, a bucket is waited for when the next one is
  // complete, so that two of them are there at once.
  void reduce_in(Segment& segment) {
    const bool adds = segment.variant != Variant::first;
    std::vector<TensorId> reduced;  // by bucket: what the reduction writes
    for (std::size_t b = 0; b < wholes_.size(); ++b) {
      const FlatBucket& bucket = sharding_.buckets[b];
      reduced.push_back(adds ? program_.add(format("bucket {}/summand", b), {bucket.count / sharding_.shards},
                                            DType::float32, Role::activation)
                             : bucket.gradient);
    }
    const auto begin = [&](std::size_t b, std::vector<Op>& ops) {
      if (!rounds_) return ops.push_back(scatter(b, reduced[b], overlap_));
      for (Op& op : sums_[b].begin()) ops.push_back(std::move(op));
    };
    const auto end = [&](std::size_t b, std::vector<Op>& ops) {
      if (rounds_) {
        for (Op& op : sums_[b].add_into(reduced[b])) ops.push_back(std::move(op));
      } else if (overlap_) {
        ops.push_back(wait_for(program_, reduced[b]));
      }
      if (!adds) return;
      const TensorId sum = sharding_.buckets[b].gradient;
      ops.push_back({std::make_shared<Add>(), {sum, reduced[b]}, {sum}, program_.tensor(sum).name, {}});
    };
    const auto reduction = [&](std::size_t b) {
      std::vector<Op> ops;
      if (overlap_ && b > 0) end(b - 1, ops);
      begin(b, ops);
      if (!overlap_ || b + 1 == wholes_.size()) end(b, ops);
      return ops;
    };
    insert_behind(program_, wholes_, reduction, segment);
  }

  Program program_;
  const bool overlap_;
  const bool rounds_;        // gradients travel as bfloat16
  const bool reproducible_;  // logical shards are added in a tree
  Sharding& sharding_;
  std::vector<TensorId> wholes_;  // by bucket
  std::vector<RoundedSum> sums_;  // by bucket, where they are rounded
};

}  // namespace

Program share_update(Program program, const MeshRank& rank, const Strategy& strategy) {
  const bool shares = strategy.options.shard != Shard::none && rank.size(MeshAxis::data) > 1;
  if (!shares || program.find(Phase::update) < 0) return program;
  return Sharder(std::move(program), rank, strategy).run();
}

}  // namespace trainctl
