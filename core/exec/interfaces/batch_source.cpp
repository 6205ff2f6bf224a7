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
std::int64_t begin_of(std::int64_t batch, const Sharer& who, std::int64_t r) {
  const std::int64_t replicas = who.rank.size(MeshAxis::data);
  if (who.shards.any()) {
    if (r == replicas) return batch;
    return std::min(batch,
                    who.shards.of_replica(static_cast<int>(r), static_cast<int>(replicas)).first * who.shards.samples);
  }
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

}  // namespace

Share share_of(std::int64_t batch, const Sharer& who) {
  const std::int64_t replica = who.rank.along(MeshAxis::data), first = begin_of(batch, who, replica);
  return {first, begin_of(batch, who, replica + 1) - first};
}

std::int64_t largest_share(std::int64_t batch, const Sharer& anyone) {
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
