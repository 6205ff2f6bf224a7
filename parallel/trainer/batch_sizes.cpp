// Computes batch sizes, micro-batches and logical shards.
#include "parallel/trainer/batch_sizes.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "core/compile/memory_fit.h"
#include "core/graph/ops/training/tree_sum.h"
#include "parallel/strategies/programs.h"
#include "parallel/trainer/options.h"

namespace trainctl {
namespace {

// A pipeline of p stages with m micro-batches is idle for (p - 1) / (m + p - 1) of the time. With four micro-batches
// for each stage this is at most a fifth.
constexpr int micro_batches_per_stage = 4;

using Speeds = std::vector<double>;

std::int64_t samples_of(std::int64_t batch, const Mesh& mesh, const Speeds& speeds, int replica) {
  return share_of(batch, {MeshRank(mesh, mesh.rank({.data = replica})), speeds}).count;
}

// Returns the largest number that divides the shares of all replicas.
std::int64_t common_divisor(std::int64_t batch, const Mesh& mesh, const Speeds& speeds) {
  std::int64_t divisor = 0;
  for (int r = 0; r < mesh.data; ++r) divisor = std::gcd(divisor, samples_of(batch, mesh, speeds, r));
  return std::max<std::int64_t>(divisor, 1);
}

// Returns the divisor of `of` that is nearest to `number` and at least `least`; 0 if there is none.
std::int64_t nearest_divisor(std::int64_t of, std::int64_t number, std::int64_t least = 1) {
  std::int64_t best = 0;
  for (std::int64_t d = 1; d <= of / d; ++d) {
    if (of % d != 0) continue;
    for (const std::int64_t divisor : {d, of / d}) {
      if (divisor < least) continue;
      if (best == 0 || std::abs(divisor - number) < std::abs(best - number)) best = divisor;
    }
  }
  return best;
}

// Checks that every replica's share of a full batch can be divided into `count` micro-batches of one size. `key`: the
// config's key that sets `count`.
void check_divides(std::int64_t batch, std::int64_t count, const Mesh& mesh, const Speeds& speeds, std::string_view key,
                   const SourceLocation& location) {
  const bool pipeline = mesh.pipeline > 1;
  for (int r = 0; r < mesh.data; ++r) {
    const std::int64_t samples = samples_of(batch, mesh, speeds, r);
    if (samples % count == 0) continue;
    const std::string remedy =
        !speeds.empty() ? format("choose strategy.share such that {} divides each replica's samples", count)
        : pipeline      ? format("use {}, or a batch size that is a multiple of {}",
                                 nearest_divisor(common_divisor(batch, mesh, speeds), count), mesh.data * count)
                        : "choose a batch size that is a multiple of ranks times gradient_accumulation";
    throw Error(ErrorKind::config, location,
                format("{}: {} does not divide the {} that {} {} has of each batch of {}", key, count,
                       counted(samples, "sample"), pipeline ? "replica" : "rank", r, grouped(batch)),
                remedy);
  }
}

std::int64_t micro_batches(const TrainOptions& train, const StrategyOptions& strategy, const Mesh& mesh,
                           const Speeds& speeds, std::int64_t batch) {
  const std::int64_t least = train.gradient_accumulation;
  if (mesh.pipeline == 1) {
    check_divides(batch, least, mesh, speeds, "train.gradient_accumulation", {});
    return least;
  }
  if (strategy.micro_batches.is_auto()) {
    const std::int64_t target_count = micro_batches_per_stage * mesh.pipeline;
    const std::int64_t found = nearest_divisor(common_divisor(batch, mesh, speeds), target_count, least);
    if (found == 0) check_divides(batch, least, mesh, speeds, "train.gradient_accumulation", {});
    return std::max(found, least);
  }
  const Located<int>& given = *strategy.micro_batches.given;
  if (least > 1) {
    throw Error(ErrorKind::config, given.location,
                "strategy.micro_batches and train.gradient_accumulation both divide the batch",
                "set only one of them: micro_batches in a pipeline");
  }
  check_divides(batch, given.value, mesh, speeds, "strategy.micro_batches", given.location);
  return given.value;
}

}  // namespace

LogicalShards shards_of(const TrainOptions& train, const StrategyOptions& strategy, int ranks) {
  if (!strategy.reproducible) return {};
  const Located<int>& shards = strategy.reproducible->shards;
  const std::int64_t batch = train.global_batch(ranks), shard_count = shards.value * train.gradient_accumulation;
  const int replicas = mesh_of(strategy, ranks).data;
  if (replicas > shards.value) {
    throw Error(
        ErrorKind::config, shards.location,
        format("{} replicas share {} logical shards: some would have none", replicas, shards.value),
        format("set at least {} shards, or start fewer ranks; results depend on the number of shards", replicas));
  }
  if (batch % shard_count != 0) {
    const std::string of = train.gradient_accumulation == 1 ? format("{} logical shards", shards.value)
                                                            : format("{} logical shards of {} micro-batches",
                                                                     shards.value, train.gradient_accumulation);
    throw Error(
        ErrorKind::config, shards.location,
        format("a batch of {} cannot be divided into {}", counted(batch, "sample"), of),
        format("choose a batch size that is a multiple of {}, or another number of shards, such as {}", shard_count,
               nearest_divisor(std::max<std::int64_t>(batch / train.gradient_accumulation, 1), shards.value)));
  }
  if (shard_count > max_summands) {
    throw Error(ErrorKind::config, shards.location,
                format("{} logical shards of {} micro-batches are {}, but at most {} are supported", shards.value,
                       train.gradient_accumulation, shard_count, max_summands),
                "set fewer shards, or less gradient_accumulation");
  }
  return {static_cast<int>(shard_count), batch / shard_count, !keeps_gradients(strategy.shard)};
}

BatchSizes batch_sizes(const ModelOptions& model, const TrainOptions& train, const StrategyOptions& strategy,
                       const DataInfo& data, int ranks, const DataPosition& start) {
  const std::int64_t batch = train.global_batch(ranks);
  BatchSizes sizes;
  sizes.whole_batch = has_whole_batch_loss(model);
  sizes.training = std::min(batch, data.training_samples);
  sizes.training_last = data.training_samples % batch;
  sizes.training_resumed_last = std::max<std::int64_t>(data.training_samples - start.offset, 0) % batch;
  const Mesh mesh = mesh_of(strategy, ranks);
  sizes.speeds = speeds_of(strategy, mesh);
  sizes.shards = shards_of(train, strategy, ranks);
  const std::int64_t evaluated = evaluation_batch(batch, sizes.training_division(MeshRank(mesh, 0)));
  sizes.evaluation = std::min(evaluated, data.validation_samples);
  sizes.evaluation_last = data.validation_samples % evaluated;
  if (sizes.shards.any()) {
    sizes.gradient_accumulation = static_cast<int>(divide_up(sizes.shards.count, mesh.data));
    return sizes;
  }
  sizes.gradient_accumulation = static_cast<int>(micro_batches(train, strategy, mesh, sizes.speeds, sizes.training));
  return sizes;
}

BatchCut batch_cut(const BatchSizes& sizes, const MeshRank& rank) {
  return {sizes.training, sizes.gradient_accumulation, share_of(sizes.training, sizes.training_division(rank)).count};
}

}  // namespace trainctl
