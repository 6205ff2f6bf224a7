// Checks a config, phase by phase.
#include "run/job/checked.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/base/memory_folder.h"
#include "core/compile/memory_fit.h"
#include "core/graph/ops/normalization/batch_norm_pool.h"
#include "io/metrics/count_progress.h"
#include "parallel/launch/plan.h"
#include "parallel/trainer/batch_sizes.h"
#include "parallel/trainer/training_plan.h"
#include "run/job/causality.h"
#include "run/job/device.h"
#include "run/job/job.h"
#include "run/job/kept_kernels.h"
#include "run/job/phases.h"
#include "run/job/pretrained.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

// Times the kernels that are not chosen yet, and stores the choices.
void measure_kernels(const RunSpec& spec, const std::vector<RunPrograms>& ranks, Backend& backend,
                     KernelChoices& choices) {
  KernelChoices unmeasured = choices;
  unmeasured.stop_timing();
  for (const RunPrograms& rank : ranks) compile(rank.programs(), backend, unmeasured);
  if (unmeasured.assumed() == 0) return;
  CountProgress progress("timing kernels", unmeasured.assumed());
  choices.watch_timing([&progress](const std::string&) { progress.next(); });
  for (const RunPrograms& rank : ranks) compile(rank.programs(), backend, choices);
  keep_kernels(spec, backend, choices);
}

// The layers and parameters of a replica's ranks. `programs`: one for each rank with its own programs.
std::vector<CheckedPosition> positions_of(const Strategy& strategy, const BatchSizes& sizes,
                                          const std::vector<RunPrograms>& programs) {
  const Mesh& mesh = strategy.mesh;
  std::vector<CheckedPosition> positions;
  for (int i = 0; i < mesh.ranks_of_replica(); ++i) {
    CheckedPosition position;
    position.rank = MeshRank(mesh, mesh.ranks() - mesh.ranks_of_replica() + i);
    const Program& program = programs_of(programs, sizes, position.rank).programs().front();
    for (const LayerLine& layer : program.layers) {
      const auto stage = strategy.stages.find(layer.name);
      const bool computes = mesh.pipeline == 1 ? layer.ops > 0
                                               : stage != strategy.stages.end() &&
                                                     stage->second == position.rank.along(MeshAxis::pipeline);
      if (computes) position.layers.push_back(layer.name);
    }
    for (const FlatEntry& entry : program.flat.parameters) {
      const Tensor& tensor = program.tensor(entry.parameter);
      position.parameters += entry.count;
      if (tensor.shard) position.split.push_back(tensor);
    }
    if (program.flat.shares(Quantity::parameters)) position.parameters = program.flat.local_count(Quantity::parameters);
    positions.push_back(std::move(position));
  }
  return positions;
}

// Finds the memory of the rank that needs the most, of all ranks and at each position of a replica.
void find_memory(const RunSpec& spec, const DataInfo& info, Backend& backend, KernelChoices& choices,
                 Checked& checked) {
  const auto keep_larger = [](MemoryPlan& largest, const MemoryPlan& memory) {
    if (memory.total() >= largest.total()) largest = memory;
  };
  for (const RunPrograms& rank : checked.programs) {
    const MemoryPlan memory =
        compile_rank(rank.programs(), spec, info, checked.sizes.training_division(rank.rank()), backend, choices)
            .memory;
    keep_larger(checked.memory, memory);
    keep_larger(checked.positions[static_cast<std::size_t>(rank.rank().index_in_replica())].memory, memory);
  }
}

// The training programs of the stages of a replica.
std::vector<const Program*> stages_of(const Checked& checked) {
  std::vector<const Program*> stages;
  for (int stage = 0; stage < checked.mesh.pipeline; ++stage) {
    const MeshRank rank(checked.mesh, checked.mesh.rank({.pipeline = stage}));
    stages.push_back(&programs_of(checked.programs, checked.sizes, rank).programs().front());
  }
  return stages;
}

// Whether a replica normalizes its samples by the statistics of its own batch.
bool normalizes_own_samples(const Program& program) {
  const auto normalizes = [](const Op& op) {
    return op.get_if<BatchNorm>() != nullptr || op.get_if<BatchNormPool>() != nullptr;
  };
  return std::any_of(program.segments.begin(), program.segments.end(), [&](const Segment& segment) {
    return std::any_of(segment.ops.begin(), segment.ops.end(), normalizes);
  });
}

Checked check_phase(const RunSpec& spec, const LaunchFlags& launch, bool measure) {
  Checked checked;
  const LaunchRequest request = launch_request(spec.cluster, launch);
  const LaunchPlan plan = plan_launch(request);
  if (most_restarts_of(spec.cluster, launch) > 0) require_min_ranks(spec.cluster, request, plan);
  checked.ranks = plan.ranks;
  checked.batch = spec.train.global_batch(plan.ranks);
  const DataInfo info = known_data(spec, checked.batch, checked.data_at_hand);
  checked.warnings = info.warnings;
  if (checked.data_at_hand) checked.steps_per_epoch = steps_per_epoch(spec.train, info, plan.ranks);
  const std::string short_run = checked.data_at_hand ? warmup_warning(spec.train, info, plan.ranks) : "";
  if (!short_run.empty()) log::warning(short_run);
  checked.cached_bytes = info.cached_bytes;
  const auto backend = make_backend(spec.cluster, spec.train, spec.strategy, plan.threads, 0);
  checked.sizes = batch_sizes(spec.model, spec.train, spec.strategy, info, plan.ranks);
  Strategy strategy = strategy_for(spec, info, plan.ranks, *backend);
  checked.programs = build_all_programs(spec, info, strategy, checked.sizes);
  const std::vector<std::string>& warnings = checked.programs.front().programs().front().warnings;
  checked.warnings.insert(checked.warnings.end(), warnings.begin(), warnings.end());
  if (const std::string seen = causality_warning(spec, info); !seen.empty()) checked.warnings.push_back(seen);
  check_pretrained(spec, info);
  const auto samples_of = [&sizes = checked.sizes](const RunPrograms& rank) {
    return batch_cut(sizes, rank.rank()).samples;
  };
  checked.least_share = samples_of(*std::ranges::min_element(checked.programs, {}, samples_of));
  checked.largest_share = samples_of(*std::ranges::max_element(checked.programs, {}, samples_of));
  checked.measures_shares = spec.strategy.shares_by_measuring() && strategy.mesh.data > 1;
  checked.mesh = strategy.mesh;
  checked.automatic = spec.strategy.automatic && plan.ranks > 1;
  checked.normalizes_own_samples =
      std::any_of(checked.programs.begin(), checked.programs.end(),
                  [](const RunPrograms& rank) { return normalizes_own_samples(rank.programs().front()); });
  checked.positions = positions_of(strategy, checked.sizes, checked.programs);
  const BatchCut cut{checked.sizes.training, checked.sizes.gradient_accumulation, checked.largest_share};
  const MemoryLimit limit = memory_of_rank(spec.cluster, *backend, plan);
  for (const RunPrograms& rank : checked.programs) require_fit(least_memory(rank.programs()), limit, cut, Need::least);

  KernelChoices choices = kept_kernels(spec, *backend);
  if (measure) measure_kernels(spec, checked.programs, *backend, choices);
  choices.stop_timing();
  checked.recomputed = recomputed_blocks(spec, info, strategy, checked.sizes, limit.bytes, *backend, choices);
  if (!checked.recomputed.empty()) {
    strategy.recomputed = checked.recomputed;
    checked.programs = build_all_programs(spec, info, strategy, checked.sizes);
  }
  find_memory(spec, info, *backend, choices, checked);
  checked.assumed = choices.assumed();
  checked.shared_memory = shared_memory_bytes(stages_of(checked), spec.checkpoint);
  try {
    if (checked.assumed == 0) require_fit(checked.memory, limit, cut);
    if (plan.first_rank_here) require_shared_memory(shared_memory_folder, checked.shared_memory);
  } catch (const Error& error) {
    checked.unfit = error;
  }
  for (const LayerLine& layer : checked.layers()) {
    checked.flops_per_sample += layer.flops;
    checked.parameters += layer.parameters;
    checked.trainable += layer.trainable;
  }
  return checked;
}

// Throws ConfigError if faults of the run name a rank that it does not have, or would happen after its last step. The
// run itself also tests what only its ranks know: the hosts, and what trainctl may do there.
void require_possible_faults(const RunSpec& spec, int ranks, std::int64_t steps_per_epoch) {
  Reader reader;
  for (const Choice& fault : spec.faults) {
    const auto& options = fault.as<FaultOptions>();
    for (const std::string& why :
         {why_no_rank(options, ranks), why_too_late(options, steps_of_run(spec.train, steps_per_epoch))}) {
      if (!why.empty()) reader.error(fault.location, why);
    }
  }
  reader.throw_if_failed();
}

}  // namespace

Checked check_config(const RunSpec& spec, const LaunchFlags& launch, bool measure) {
  Checked largest;
  std::vector<CheckedPhase> phases;
  for (std::size_t number = 0; number < phase_count(spec); ++number) {
    RunSpec phase = in_phase(spec, number);
    if (number > 0) phase.model.weights.reset();  // only the first phase begins with them
    Checked checked = check_phase(phase, launch, measure);
    if (!spec.train.phases.empty()) {
      phases.push_back({phase_text(spec, number), checked.trainable, checked.memory.total()});
    }
    if (number == 0 || checked.memory.total() > largest.memory.total()) largest = std::move(checked);
  }
  require_possible_faults(spec, largest.ranks, largest.steps_per_epoch);
  largest.phases = std::move(phases);
  for (const std::string& warning : largest.warnings) log::warning(warning);
  return largest;
}

}  // namespace trainctl
