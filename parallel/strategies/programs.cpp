// Builds the programs of a rank and checks the communications of all ranks.
#include "parallel/strategies/programs.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/layers/model/model_options.h"
#include "parallel/strategies/communication_check/check.h"
#include "parallel/strategies/requirements.h"

namespace trainctl {
namespace {

// The values that determine the programs of a rank: its shares of batches, and its position in its replica.
using Shares = std::array<std::int64_t, 7>;
Shares shares_of(const BatchSizes& sizes, const MeshRank& rank) {
  const auto trained = [&](std::int64_t global) { return share_of(global, sizes.training_division(rank)).count; };
  const auto evaluated = [&](std::int64_t global) { return share_of(global, sizes.evaluation_division(rank)).count; };
  return {trained(sizes.training), trained(sizes.training_last), trained(sizes.training_resumed_last),
          evaluated(sizes.evaluation), evaluated(sizes.evaluation_last),
          // Determines the sums of the rank's logical shards, and its samples among those of the whole batch.
          sizes.shards.any() || sizes.whole_batch ? rank.along(MeshAxis::data) : 0, rank.index_in_replica()};
}

// Returns the logical shards of a batch that a replica has: all of one size, except perhaps the last.
MicroBatches shards_of_replica(const LogicalShards& shards, std::int64_t batch, const MeshRank& rank) {
  const std::int64_t held = share_of(batch, {rank, {}, shards}).count, whole = held / shards.samples;
  if (held == 0) return {};
  if (whole == 0) return {held, 1};
  return {shards.samples, static_cast<int>(whole), held % shards.samples};
}

// Returns the parallelism of a step; with sync_every, the parallelism of one replica alone.
Parallelism parallelism_of_step(Strategy strategy, const MeshRank& rank) {
  if (strategy.options.sync_every.value == 1) return parallelism(strategy, rank.mesh.rank(rank.position));
  strategy.mesh.data = 1;
  return parallelism(strategy, rank.index_in_replica());
}

}  // namespace

SampleShares shares_of_replicas(std::int64_t batch, BatchDivision division) {
  SampleShares shares{{}, division.rank.along(MeshAxis::data)};
  const Mesh mesh = division.rank.mesh;
  for (int replica = 0; replica < mesh.data; ++replica) {
    division.rank = MeshRank(mesh, mesh.rank({.data = replica}));
    shares.counts.push_back(share_of(batch, division).count);
  }
  return shares;
}

std::vector<int> ranks_with_own_programs(const BatchSizes& sizes, const Mesh& mesh) {
  std::vector<int> lowest;
  std::map<Shares, std::size_t> found;  // index in `lowest`; key: the shares
  for (int rank = mesh.ranks() - 1; rank >= 0; --rank) {
    const auto [entry, added] = found.try_emplace(shares_of(sizes, MeshRank(mesh, rank)), lowest.size());
    if (added) lowest.push_back(rank);
    lowest[entry->second] = rank;
  }
  return lowest;
}

RunPrograms::RunPrograms(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, int rank,
                         Reader& reader) {
  rank_ = MeshRank(strategy.mesh, rank);
  Parallelism parallel = parallelism_of_step(strategy, rank_);
  check_requirements(spec, strategy, sizes, rank_, reader);
  // Returns the micro-batches of a replica's share of a batch. Micro-batches of a full batch have at least one sample.
  // If ranks reduce gradients in every micro-batch, micro-batches have equal sizes: the gradients are in a slot, and
  // micro-batches of two sizes would not share its memory.
  const auto micro_batches = [&](std::int64_t global, const MeshRank& of_rank) -> MicroBatches {
    if (sizes.shards.any()) return shards_of_replica(sizes.shards, global, of_rank);
    const std::int64_t samples = share_of(global, {of_rank, sizes.speeds}).count;
    if (global == sizes.training && samples > 0) {
      return {samples / sizes.gradient_accumulation, sizes.gradient_accumulation};
    }
    const std::int64_t full = share_of(sizes.training, {of_rank, sizes.speeds}).count;
    const std::int64_t largest = std::max<std::int64_t>(divide_up(full, sizes.gradient_accumulation), 1);
    return parallel.keeps_gradients ? cut_micro_batches(samples, largest) : cut_equally(samples, largest);
  };
  std::map<std::array<std::int64_t, 5>, int> known;  // index of the program; key: the values that determine it
  const auto add_training = [&](std::int64_t global) {
    if (global == 0 || training_.contains(global) || !reader.ok()) return;
    const MicroBatches own = micro_batches(global, rank_);
    const ShardedStep step{sizes.shards, sizes.shards.any() ? sizes.shards.of_batch(global) : 0};
    int max_micro_batches = 0;
    for (int r = 0; r < strategy.mesh.data && parallel.rank.size(MeshAxis::data) > 1; ++r) {
      max_micro_batches = std::max(
          max_micro_batches, micro_batches(global, MeshRank(strategy.mesh, strategy.mesh.rank({.data = r}))).all());
    }
    if (sizes.whole_batch) parallel.shares = shares_of_replicas(global, sizes.training_division(rank_));
    const auto [entry, added] =
        known.try_emplace({own.total(), own.all(), max_micro_batches, step.present, sizes.whole_batch ? global : 0},
                          static_cast<int>(programs_.size()));
    training_[global] = entry->second;
    if (added) programs_.push_back(training_program(spec, own, reader, parallel, max_micro_batches, step));
  };
  std::map<std::array<std::int64_t, 2>, int> evaluated;  // index of the program
  const auto add_evaluation = [&](std::int64_t global) {
    if (global == 0 || evaluation_.contains(global) || !reader.ok()) return;
    const std::int64_t samples = share_of(global, sizes.evaluation_division(rank_)).count;
    if (sizes.whole_batch) parallel.shares = shares_of_replicas(global, sizes.evaluation_division(rank_));
    const auto [entry, added] =
        evaluated.try_emplace({samples, sizes.whole_batch ? global : 0}, static_cast<int>(programs_.size()));
    evaluation_[global] = entry->second;
    if (added) programs_.push_back(evaluation_program(spec, samples, reader, parallel));
  };
  add_training(sizes.training);
  add_training(sizes.training_last);
  add_training(sizes.training_resumed_last);
  add_evaluation(sizes.evaluation);
  add_evaluation(sizes.evaluation_last);
}

RunPrograms build_run_programs(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, int rank) {
  Reader reader;
  RunPrograms programs(spec, strategy, sizes, rank, reader);
  reader.throw_if_failed();
  return programs;
}

int RunPrograms::training(std::int64_t global_samples) const { return training_.at(global_samples); }

int RunPrograms::evaluation(std::int64_t global_samples) const { return evaluation_.at(global_samples); }

const RunPrograms& programs_of(const std::vector<RunPrograms>& programs, const BatchSizes& sizes,
                               const MeshRank& rank) {
  const auto found = std::find_if(programs.begin(), programs.end(), [&](const RunPrograms& own) {
    return shares_of(sizes, own.rank()) == shares_of(sizes, rank);
  });
  require(found != programs.end(), "no program was built for this rank");
  return *found;
}

void check_steps(const std::vector<RunPrograms>& programs, const BatchSizes& sizes, const Mesh& mesh) {
  if (mesh.ranks() == 1) return;
  std::vector<const RunPrograms*> of_ranks;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    of_ranks.push_back(&programs_of(programs, sizes, MeshRank(mesh, rank)));
  }
  const auto check_step = [&](std::int64_t global, auto number_of) {
    if (global == 0) return;
    std::vector<const Program*> step;
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      const RunPrograms& own = *of_ranks[static_cast<std::size_t>(rank)];
      step.push_back(&own.programs()[static_cast<std::size_t>(number_of(own, MeshRank(mesh, rank)))]);
    }
    check_communications(mesh, step);
  };
  for (const std::int64_t global : {sizes.training, sizes.training_last, sizes.training_resumed_last}) {
    check_step(global, [&](const RunPrograms& own, const MeshRank&) { return own.training(global); });
  }
  for (const std::int64_t global : {sizes.evaluation, sizes.evaluation_last}) {
    check_step(global, [&](const RunPrograms& own, const MeshRank&) { return own.evaluation(global); });
  }
}

}  // namespace trainctl
