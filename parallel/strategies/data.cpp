// Adds the reductions of data parallelism to a program.
#include "parallel/strategies/table.h"

#include <limits>
#include <utility>

#include "core/graph/ops/collectives.h"
#include "parallel/strategies/buckets.h"
#include "parallel/strategies/rounded.h"

namespace trainctl {
namespace {

Op all_reduce(const Program& program, TensorId bucket, bool asynchronous) {
  auto def = std::make_shared<AllReduce>(MeshAxis::data, asynchronous);
  return {std::move(def), {bucket}, {bucket}, program.tensor(bucket).name, {}};
}

std::vector<TensorId> add_buckets(Program& program, std::vector<std::vector<TensorId>> gradients) {
  std::vector<TensorId> buckets;
  for (std::vector<TensorId>& members : gradients) {
    buckets.push_back(add_bucket(program, std::move(members), buckets.size()));
  }
  return buckets;
}

std::vector<std::vector<TensorId>> buckets_of(const Program& program, const Strategy& strategy) {
  constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  return strategy.overlap ? gradient_buckets(program.flat, strategy.options)
                          : gradient_buckets(program.flat, unlimited, unlimited);
}

void append(std::vector<Op> more, std::vector<Op>& ops) {
  std::move(more.begin(), more.end(), std::back_inserter(ops));
}

// Reduces gradients as bfloat16. Buckets limit the memory of the temporary tensors, also without overlap. With overlap,
// the summands of a bucket and the sums of the previous bucket are communicated at the same time.
Program reduce_rounded(Program program, int ranks, const Strategy& strategy) {
  const std::vector<TensorId> buckets = add_buckets(program, gradient_buckets(program.flat, strategy.options));
  if (buckets.empty()) return program;
  std::vector<RoundedSum> sums;
  for (TensorId bucket : buckets) {
    Tensor& tensor = program.tensors[static_cast<std::size_t>(bucket)];
    tensor.type.shape = {elements_of(program, tensor.members)};
    sums.emplace_back(program, bucket, ranks, strategy.overlap);
  }
  if (!strategy.overlap) {
    std::vector<Op>& ops = program.segments[static_cast<std::size_t>(program.find(Phase::update))].ops;
    for (const RoundedSum& sum : sums) {
      for (auto phase : {&RoundedSum::begin, &RoundedSum::gather, &RoundedSum::end}) append((sum.*phase)(), ops);
    }
    return program;
  }
  const auto reduction = [&](std::size_t b) {
    std::vector<Op> ops;
    if (b > 1) append(sums[b - 2].end(), ops);
    if (b > 0) append(sums[b - 1].gather(), ops);
    append(sums[b].begin(), ops);
    return ops;
  };
  Segment& segment = last_backward(program);
  insert_after(program, buckets, reduction, segment);
  if (sums.size() > 1) append(sums[sums.size() - 2].end(), segment.ops);
  append(sums.back().gather(), segment.ops);
  append(sums.back().end(), segment.ops);
  return program;
}

}  // namespace

Program reduce_gradients(Program program, const MeshRank& rank, const Strategy& strategy) {
  const int update = program.find(Phase::update);
  if (rank.size(MeshAxis::data) == 1 || update < 0 || strategy.options.shard != Shard::none) return program;
  if (program.shards.any()) return program;  // add_in_tree() reduces the gradients
  if (strategy.options.gradient_dtype == CommunicatedDType::bfloat16) {
    return reduce_rounded(std::move(program), rank.size(MeshAxis::data), strategy);
  }
  const std::vector<TensorId> buckets = add_buckets(program, buckets_of(program, strategy));
  if (buckets.empty()) return program;  // all layers are frozen
  const bool overlaps = strategy.overlap && buckets.size() > 1;
  if (overlaps) {
    const std::vector<TensorId> early(buckets.begin(), buckets.end() - 1);
    const auto reduction = [&](std::size_t b) { return std::vector<Op>{all_reduce(program, early[b], true)}; };
    insert_after(program, early, reduction, last_backward(program));
  }
  std::vector<Op>& ops = program.segments[static_cast<std::size_t>(update)].ops;
  for (std::size_t b = overlaps ? buckets.size() - 1 : 0; b < buckets.size(); ++b) {
    ops.push_back(all_reduce(program, buckets[b], overlaps));
  }
  if (!overlaps) return program;
  for (TensorId bucket : buckets) ops.push_back(wait_for(program, bucket));
  return program;
}

}  // namespace trainctl
