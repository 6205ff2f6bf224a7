// Data parallelism as a function from program to program.
#include "parallel/strategies/data.h"

#include <limits>
#include <utility>

#include "core/graph/ops/collectives.h"
#include "parallel/strategies/buckets.h"

namespace trainctl {
namespace {

Op all_reduce(const Program& program, TensorId bucket, bool asynchronous) {
  auto def = std::make_shared<AllReduce>(MeshAxis::data, asynchronous);
  return {std::move(def), {bucket}, {bucket}, program.tensor(bucket).name, {}};
}

std::vector<std::vector<TensorId>> buckets_of(const Program& program, const Strategy& strategy) {
  constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  return strategy.overlap ? gradient_buckets(program.flat, strategy.options)
                          : gradient_buckets(program.flat, unlimited, unlimited);
}

}  // namespace

Program reduce_gradients(Program program, const MeshRank& rank, const Strategy& strategy) {
  const int update = program.find(Phase::update);
  if (rank.size(MeshAxis::data) == 1 || update < 0 || strategy.options.shard != Shard::none) return program;
  std::vector<TensorId> buckets;
  for (std::vector<TensorId>& gradients : buckets_of(program, strategy)) {
    buckets.push_back(add_bucket(program, std::move(gradients), buckets.size()));
  }
  if (buckets.empty()) return program;  // nothing trains
  const bool several = buckets.size() > 1;
  if (several) {
    const std::vector<TensorId> early(buckets.begin(), buckets.end() - 1);
    const auto reduction = [&](std::size_t b) { return std::vector<Op>{all_reduce(program, early[b], true)}; };
    insert_behind(program, early, reduction, last_backward(program));
  }
  std::vector<Op>& ops = program.segments[static_cast<std::size_t>(update)].ops;
  ops.push_back(all_reduce(program, buckets.back(), several));
  if (!several) return program;
  for (TensorId bucket : buckets) ops.push_back(wait_for(program, bucket));
  return program;
}

}  // namespace trainctl
