// Checks what losses over the whole batch, players and teachers require of a strategy.
#include "parallel/strategies/requirements.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/layers/model/model_options.h"
#include "core/program/program_spec.h"
#include "parallel/strategies/options.h"
#include "parallel/strategies/programs.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {
namespace {

// Reports why a loss over the whole batch cannot be computed, if it cannot.
void check_whole_batch(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, const MeshRank& rank,
                       Reader& reader) {
  const auto& losses = spec.model->add_loss;
  const auto loss = std::ranges::find_if(losses, [](const auto& of) { return of.second.whole_batch; });
  if (loss == losses.end()) return;
  const auto refuse = [&](const std::string& why) {
    reader.error(loss->second.expression.location,
                 format("add_loss '{}' needs all samples of a batch at the same time: {}", loss->first, why));
  };
  if (sizes.gradient_accumulation > 1) refuse("use gradient_accumulation 1");
  if (sizes.shards.any()) refuse("leave out strategy.reproducible, which divides a batch into logical shards");
  if (strategy.mesh.pipeline > 1) refuse("use no pipeline, whose stages compute micro-batches");
  if (strategy.options.sync_every.value > 1) refuse("use sync_every 1, since otherwise replicas take steps alone");
  for (const auto& [samples, division] : {std::pair(sizes.training, sizes.training_division(rank)),
                                          {sizes.training_last, sizes.training_division(rank)},
                                          {sizes.training_resumed_last, sizes.training_division(rank)},
                                          {sizes.evaluation, sizes.evaluation_division(rank)},
                                          {sizes.evaluation_last, sizes.evaluation_division(rank)}}) {
    if (samples == 0 || std::ranges::min(shares_of_replicas(samples, division).counts) > 0) continue;
    refuse(
        format("a batch of {} leaves one of {} without a sample; use fewer ranks, another "
               "batch_size, or equal shares",
               counted(samples, "sample"), counted(strategy.mesh.data, "replica")));
    break;
  }
}

// Reports why players cannot train with a strategy, if they cannot.
void check_strategy_of_players(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes,
                               Reader& reader) {
  if (spec.players.empty()) return;
  const auto refuse = [&](const std::string& why) {
    reader.error(spec.players.front().location, "train.players cannot be used here: " + why);
  };
  const StrategyOptions& options = strategy.options;
  if (strategy.mesh.pipeline > 1 || strategy.mesh.tensor > 1) {
    refuse("players share a network that each rank holds as a whole; use data parallelism alone (strategy.data)");
  } else if (sizes.shards.any()) {
    refuse("leave out strategy.reproducible, which divides a batch into logical shards");
  } else if (sizes.gradient_accumulation > 1) {
    refuse("players compute the whole batch at once; use gradient_accumulation 1");
  }
  if (options.shard != Shard::none && strategy.mesh.data > 1) refuse("use `strategy.shard: none`");
  if (options.sync_every.value > 1) refuse("use `strategy.sync_every: 1`");
  if (options.recompute == Recompute::automatic) refuse("use `strategy.recompute: blocks` or `none`");
}

// Reports why teachers cannot follow other layers with a strategy, if they cannot.
void check_strategy_of_teachers(const ProgramSpec& spec, const Strategy& strategy, Reader& reader) {
  if (spec.teachers.empty()) return;
  const bool is_cut = strategy.mesh.pipeline > 1 || strategy.mesh.tensor > 1;
  const bool is_shared = strategy.mesh.data > 1 && strategy.options.shard != Shard::none;
  if (!is_cut && !is_shared && strategy.options.sync_every.value == 1) return;
  reader.error(spec.teachers.front().location,
               "train.teachers cannot be used here: each rank must hold all weights and update them in every step; use "
               "data parallelism alone, `strategy.shard: none` and `strategy.sync_every: 1`");
}

}  // namespace

void check_requirements(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes,
                        const MeshRank& rank, Reader& reader) {
  check_whole_batch(spec, strategy, sizes, rank, reader);
  check_strategy_of_players(spec, strategy, sizes, reader);
  check_strategy_of_teachers(spec, strategy, reader);
}

}  // namespace trainctl
