// Shares of a batch.
#include "core/exec/interfaces/batch_source.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/checked.h"
#include "core/base/error.h"

namespace trainctl {
namespace {

// Where the share of replica r begins; that of the last one ends where one behind it would begin.
std::int64_t begin_of(std::int64_t batch, const BatchDivision& division, std::int64_t r) {
  const std::int64_t replicas = who.rank.size(MeshAxis::data);
  if (who.speeds.empty()) return batch * r / replicas;
  require(std::ssize(who.speeds) == replicas, "each replica has a speed");
  if (r == replicas) return batch;
  double before = 0, all = 0;
  for (std::int64_t i = 0; i < replicas; ++i) {
    if (i == r) before = all;
    all += who.speeds[static_cast<std::size_t>(i)];
  }
  return std::min(batch, static_cast<std::int64_t>(static_cast<double>(batch) * before / all));
}

// The logical shards that a replica holds of a batch, of which the batch's last one may be smaller.
Share share_of_shards(std::int64_t batch, const BatchDivision& division) {
  const LogicalShards& shards = who.shards;
  const int replica = who.rank.along(MeshAxis::data), replicas = who.rank.size(MeshAxis::data);
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
  if (who.shards.any()) return share_of_shards(batch, who);
  const std::int64_t replica = who.rank.along(MeshAxis::data), first = begin_of(batch, who, replica);
  return {first, begin_of(batch, who, replica + 1) - first};
}

BatchDivision evaluation_division(BatchDivision training) {
  if (!training.shards.any()) return training;
  training.shards = {training.rank.size(MeshAxis::data), training.shards.samples};
  return training;
}

std::int64_t evaluation_batch(std::int64_t training_batch, const BatchDivision& division) {
  if (!training.shards.any()) return training_batch;
  return training.rank.size(MeshAxis::data) * training.shards.samples;
}

std::int64_t largest_share(std::int64_t batch, const BatchDivision& division) {
  if (anyone.shards.any()) {
    const std::int64_t most = divide_up(anyone.shards.count, anyone.rank.size(MeshAxis::data));
    return std::min(batch, most * anyone.shards.samples);
  }
  if (anyone.speeds.empty()) return divide_up(batch, anyone.rank.size(MeshAxis::data));
  const double all = std::accumulate(anyone.speeds.begin(), anyone.speeds.end(), 0.0);
  const double most = std::ranges::max(anyone.speeds) / all;
  return std::min(batch, static_cast<std::int64_t>(std::ceil(static_cast<double>(batch) * most)));
}

}  // namespace trainctl
