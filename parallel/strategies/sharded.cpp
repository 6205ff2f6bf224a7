// Adds the sharded reduction and update to a program.
#include "parallel/strategies/table.h"

#include <iterator>
#include <limits>
#include <set>
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
        rounds_(strategy.options.gradient_dtype == CommunicatedDType::bfloat16),
        replicas_(rank.size(MeshAxis::data)),
        shares_gradients_(strategy.options.shard != Shard::optimizer),
        shares_parameters_(strategy.options.gathers_parameters()) {
    const bool reproducible = strategy.options.reproducible.has_value();
    if (reproducible) program_.flat.alignment = norm_chunk;
    // One bucket suffices if several would save neither time nor memory.
    constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
    const bool has_buckets = shares_gradients_ || ((overlap_ || rounds_) && !reproducible);
    std::vector<std::vector<TensorId>> buckets = has_buckets ? gradient_buckets(program_.flat, strategy.options)
                                                             : gradient_buckets(program_.flat, unlimited, unlimited);
    if (strategy.options.parameter_dtype == CommunicatedDType::bfloat16) {
      separate_vectors(buckets, program_.flat, program_.tensors);
    }
    for (std::vector<TensorId>& gradients : buckets) add(std::move(gradients));
    std::set<Quantity> shared{Quantity::states};
    if (shares_gradients_) shared.insert(Quantity::gradients);
    if (shares_parameters_) shared.insert(Quantity::parameters);
    program_.flat.share(replicas_, rank.along(MeshAxis::data), std::move(shared), std::move(buckets_));
    for (std::size_t b = 0; b < wholes_.size(); ++b) add_shards(b);
    if (!shares_parameters_) gather_after_update();
  }

  Program run() {
    if (program_.shards.any()) return std::move(program_);  // add_in_tree() reduces
    if (shares_gradients_) {
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
    const std::int64_t alignment = program_.flat.alignment;
    for (TensorId gradient : gradients) {
      Tensor& tensor = program_.tensors[static_cast<std::size_t>(gradient)];
      bucket.count = round_up(bucket.count, alignment);
      if (shares_gradients_) {
        tensor.alias_of = static_cast<TensorId>(program_.tensors.size());  // the bucket, which is added below
        tensor.alias_offset = bucket.count;
      }
      bucket.count += tensor.type.shape.count();
    }
    bucket.count = round_up(bucket.count, alignment * replicas_);
    const std::size_t number = wholes_.size();
    const TensorId whole = add_bucket(program_, std::move(gradients), number);
    Tensor& tensor = program_.tensors[static_cast<std::size_t>(whole)];
    tensor.type.shape = {bucket.count};
    if (shares_gradients_) tensor.role = Role::activation;
    bucket.gradient =
        program_.add(format("bucket {}/part", number), {bucket.count / replicas_}, DType::float32, Role::gradient);
    wholes_.push_back(whole);
    if (rounds_) sums_.emplace_back(program_, whole, replicas_, overlap_);
    buckets_.push_back(std::move(bucket));
  }

  // Adds the tensors of this rank's shards of a bucket that the update changes.
  void add_shards(std::size_t number) {
    ParameterLayout& flat = program_.flat;
    FlatBucket& bucket = flat.buckets[number];
    bucket.parameter = add_parameter_shard(program_, number);
    const auto add_state = [&](const std::string& name) {
      const TensorId state = program_.add(format("bucket {}/part/{}", number, name), {flat.shard_count(bucket)},
                                          DType::float32, Role::state);
      program_.tensors.back().placements = placed(split_along(0), {MeshAxis::data});
      return state;
    };
    for (const std::string& state : flat.states) bucket.states.push_back(add_state(state));
    if (shares_parameters_ && flat.averages) bucket.average = add_state("averages");
  }

  // Gathers each bucket of parameters on all ranks after the update of this rank's shard. With several buckets,
  // gathering a bucket overlaps the update of the next bucket.
  void gather_after_update() {
    ParameterLayout& flat = program_.flat;
    const bool several = flat.buckets.size() > 1;
    std::vector<Op> waits;
    auto entry = flat.parameters.begin();
    for (FlatBucket& bucket : flat.buckets) {
      const std::string name = program_.tensor(bucket.gradient).name + "/gathered";
      const TensorId whole = program_.add(name, {bucket.count}, DType::float32, Role::parameter);
      std::vector<TensorId>& members = program_.tensors[static_cast<std::size_t>(whole)].members;
      for (int i = 0; i < bucket.entries; ++i) members.push_back((entry++)->parameter);
      auto gather = std::make_shared<AllGather>(MeshAxis::data, replicas_, several);
      bucket.after_update.push_back({std::move(gather), {bucket.parameter}, {whole}, name, {}});
      if (several) waits.push_back(wait_for(program_, whole));
    }
    if (several) std::ranges::move(waits, std::back_inserter(flat.buckets.back().after_update));
  }

  Op scatter(std::size_t bucket, TensorId shard, bool asynchronous) const {
    auto def = std::make_shared<ReduceScatter>(MeshAxis::data, replicas_, asynchronous);
    def->consumes = true;
    return {std::move(def), {wholes_[bucket]}, {shard}, program_.tensor(wholes_[bucket]).name, {}};
  }

  // Reduces whole gradients once. With overlap, the last micro-batch reduces all buckets but the last one; the update
  // reduces the last bucket and then waits for all buckets. Without overlap, the update reduces all buckets.
  void reduce_at_end() {
    const std::size_t count = wholes_.size();
    if (count == 0) return;
    const bool overlaps = overlap_ && count > 1;
    const auto shard = [this](std::size_t b) { return program_.flat.buckets[b].gradient; };
    if (overlaps) {
      const std::vector<TensorId> early(wholes_.begin(), wholes_.end() - 1);
      const auto reduction = [&](std::size_t b) { return std::vector<Op>{scatter(b, shard(b), true)}; };
      Segment& segment = last_backward(program_);
      insert_after(program_, early, reduction, segment);
    }
    std::vector<Op>& ops = program_.segments[static_cast<std::size_t>(program_.find(Phase::update))].ops;
    for (std::size_t b = overlaps ? count - 1 : 0; b < count; ++b) ops.push_back(scatter(b, shard(b), overlaps));
    for (std::size_t b = 0; b < count && overlaps; ++b) ops.push_back(wait_for(program_, shard(b)));
  }

  // Reduces whole gradients once as bfloat16: with overlap in the last micro-batch, without overlap in the update.
  void reduce_rounded_at_end() {
    const auto reduction = [&](std::size_t b) {
      std::vector<Op> ops;
      if (b > 0) ops = sums_[b - 1].add_into(program_.flat.buckets[b - 1].gradient);
      for (Op& op : sums_[b].begin()) ops.push_back(std::move(op));
      return ops;
    };
    Segment& segment =
        overlap_ ? last_backward(program_) : program_.segments[static_cast<std::size_t>(program_.find(Phase::update))];
    insert_after(program_, wholes_, reduction, segment);
    if (sums_.empty()) return;
    for (Op& op : sums_.back().add_into(program_.flat.buckets.back().gradient)) segment.ops.push_back(std::move(op));
  }

  // Reduces each bucket in a micro-batch's backward pass. With overlap, the wait for a bucket follows when the next one
  // is complete, so that two buckets are in memory at the same time.
  void reduce_in(Segment& segment) {
    const bool adds = segment.variant != Variant::first;
    std::vector<TensorId> reduced;  // output of the reduction of each bucket
    for (std::size_t b = 0; b < wholes_.size(); ++b) {
      const FlatBucket& bucket = program_.flat.buckets[b];
      reduced.push_back(adds ? program_.add(format("bucket {}/summand", b), {bucket.count / replicas_}, DType::float32,
                                            Role::activation)
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
      const TensorId sum = program_.flat.buckets[b].gradient;
      ops.push_back({std::make_shared<Add>(), {sum, reduced[b]}, {sum}, program_.tensor(sum).name, {}});
    };
    const auto reduction = [&](std::size_t b) {
      std::vector<Op> ops;
      if (overlap_ && b > 0) end(b - 1, ops);
      begin(b, ops);
      if (!overlap_ || b + 1 == wholes_.size()) end(b, ops);
      return ops;
    };
    insert_after(program_, wholes_, reduction, segment);
  }

  Program program_;
  const bool overlap_;
  const bool rounds_;  // whether gradients are communicated as bfloat16
  const int replicas_;
  const bool shares_gradients_, shares_parameters_;
  std::vector<FlatBucket> buckets_;
  std::vector<TensorId> wholes_;  // whole gradients of each bucket
  std::vector<RoundedSum> sums_;  // sum of each bucket, if gradients are rounded
};

}  // namespace

Program share_update(Program program, const MeshRank& rank, const Strategy& strategy) {
  const bool shares = strategy.options.shard != Shard::none && rank.size(MeshAxis::data) > 1;
  if (!shares || program.find(Phase::update) < 0) return program;
  return Sharder(std::move(program), rank, strategy).run();
}

}  // namespace trainctl
