// Computes shares of a batch.
#include "core/exec/interfaces/batch_source.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/checked.h"
#include "core/base/error.h"

namespace trainctl {
namespace {

// The first sample of the share of replica r; r may be the number of replicas, for the end of the last share.
std::int64_t begin_of(std::int64_t batch, const BatchDivision& division, std::int64_t r) {
  const std::int64_t replicas = division.rank.size(MeshAxis::data);
  if (division.speeds.empty()) return batch * r / replicas;
  require(std::ssize(division.speeds) == replicas, "the number of speeds is not the number of replicas");
  if (r == replicas) return batch;
  double before = 0, all = 0;
  for (std::int64_t i = 0; i < replicas; ++i) {
    if (i == r) before = all;
    all += division.speeds[static_cast<std::size_t>(i)];
  }
  return std::min(batch, static_cast<std::int64_t>(static_cast<double>(batch) * before / all));
}

// The share that consists of the replica's logical shards of a batch; the batch's last shard may be smaller.
Share share_of_shards(std::int64_t batch, const BatchDivision& division) {
  const LogicalShards& shards = division.shards;
  const int replica = division.rank.along(MeshAxis::data), replicas = division.rank.size(MeshAxis::data);
  const int present = shards.of_batch(batch), held = shards.held_by(replica, replicas, present);
  if (held == 0) return {};
  const bool has_last = shards.shard_of(replica, replicas, held - 1) == present - 1;
  const std::int64_t missing = has_last ? present * shards.samples - batch : 0;
  Share share{shards.shard_of(replica, replicas, 0) * shards.samples, held * shards.samples - missing};
  if (shards.interleaved) share.run = shards.samples, share.step = replicas * shards.samples;
  return share;
}

}  // namespace

Share share_of(std::int64_t batch, const BatchDivision& division) {
  if (division.shards.any()) return share_of_shards(batch, division);
  const std::int64_t replica = division.rank.along(MeshAxis::data), first = begin_of(batch, division, replica);
  return {first, begin_of(batch, division, replica + 1) - first};
}

BatchDivision evaluation_division(BatchDivision training) {
  if (!training.shards.any()) return training;
  training.shards = {training.rank.size(MeshAxis::data), training.shards.samples};
  return training;
}

std::int64_t evaluation_batch(std::int64_t training_batch, const BatchDivision& division) {
  if (!division.shards.any()) return training_batch;
  return division.rank.size(MeshAxis::data) * division.shards.samples;
}

std::int64_t largest_share(std::int64_t batch, const BatchDivision& division) {
  if (division.shards.any()) {
    const std::int64_t largest = divide_up(division.shards.count, division.rank.size(MeshAxis::data));
    return std::min(batch, largest * division.shards.samples);
  }
  if (division.speeds.empty()) return divide_up(batch, division.rank.size(MeshAxis::data));
  const double all = std::accumulate(division.speeds.begin(), division.speeds.end(), 0.0);
  const double largest = std::ranges::max(division.speeds) / all;
  return std::min(batch, static_cast<std::int64_t>(std::ceil(static_cast<double>(batch) * largest)));
}

}  // namespace trainctl
