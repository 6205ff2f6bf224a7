// Job: puts together what one rank needs.
#include "cmd/job.h"

#include "core/base/format.h"
#include "core/base/log.h"
#include "core/compile/memory_fit.h"
#include "io/kernels/kernel_cache.h"
#include "io/loader/data.h"
#include "io/metrics/count_progress.h"
#include "parallel/trainer/agreement.h"
#include "parallel/trainer/batch_sizes.h"
#include "parallel/trainer/initial_weights.h"

namespace trainctl {

ProgramSpec program_spec(const RunSpec& spec, const DataInfo& data) {
  ProgramSpec programs;
  programs.model = &spec.model;
  programs.inputs = data.inputs;
  programs.outputs.clear();
  const std::vector<std::string> names = output_names(spec.model);
  for (const std::string& name : names) {
    const ChoicesOf<metric_choices>& metrics = spec.train.metrics.of(name);
    programs.outputs.push_back({names.size() == 1 ? "" : name,
                                spec.train.loss.of(name),
                                spec.train.loss_weight(name),
                                {metrics.begin(), metrics.end()},
                                data.targets[programs.outputs.size()]});
  }
  programs.weight = data.weight;
  programs.optimizer = spec.train.optimizer;
  programs.clip_norm = spec.train.clip_norm.value_or(0);
  programs.compute = spec.train.compute();
  programs.seed = spec.seed;
  return programs;
}

DataInfo known_data(const RunSpec& spec, std::int64_t batch, bool& at_hand) {
  at_hand = true;
  try {
    return Data(spec.data, spec.seed, data_use(spec), Data::Measure::no).info();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
  }
  DataInfo info = describe(spec.data, spec.seed, data_use(spec));
  at_hand = false;
  if (info.training_samples == 0) info.training_samples = batch;
  if (info.validation_samples == 0 && (spec.data.validation || spec.data.test)) info.validation_samples = batch;
  return info;
}

Strategy strategy_for(const RunSpec& spec, const DataInfo& data, int ranks, const DeviceTraits& device) {
  // On the CPU a reduction takes the cores from the computation that it would hide behind: one after the other is
  // faster.
  Strategy strategy{mesh_of(spec.strategy, ranks), spec.strategy, spec.strategy.overlap.or_else(!device.on_host)};
  if (strategy.mesh.pipeline == 1) return strategy;
  constexpr std::int64_t micro_batch = 8;  // for which stages are balanced: equal for all batches of all runs
  Reader reader;
  const Graph graph = build_model(spec.model, {.batch = micro_batch, .inputs = data.inputs}, reader).graph;
  reader.throw_if_failed();
  strategy.stages = assign_stages(graph, spec.strategy, strategy.mesh.pipeline, reader);
  reader.throw_if_failed();
  return strategy;
}

RunPrograms build_programs(const RunSpec& spec, const DataInfo& data, const Strategy& strategy, const BatchSizes& sizes,
                           int rank) {
  Reader reader;
  RunPrograms programs(program_spec(spec, data), strategy, sizes, rank, reader);
  reader.throw_if_failed();
  return programs;
}

std::vector<RunPrograms> build_all_programs(const RunSpec& spec, const DataInfo& data, const Strategy& strategy,
                                            const BatchSizes& sizes) {
  std::vector<RunPrograms> ranks;
  for (const int rank : ranks_with_own_programs(sizes, strategy.mesh)) {
    ranks.push_back(build_programs(spec, data, strategy, sizes, rank));
  }
  check_steps(ranks, sizes, strategy.mesh);
  return ranks;
}

Compiled compile_rank(const std::vector<Program>& programs, const RunSpec& spec, const DataInfo& data, int ranks,
                      Backend& backend, KernelChoices& choices) {
  Compiled compiled = compile(programs, backend, choices);
  const int replicas = mesh_of(spec.strategy, ranks).data;
  compiled.memory.prefetched =
      batch_bytes(spec.data, data, spec.train.global_batch(ranks), replicas, programs.front().target_forms);
  return compiled;
}

namespace {

// Rank 0 chooses implementations: those of the checkpoint, those kept for this hardware, and timed ones for what is
// new, also for the batch sizes that only other ranks have. Before that it checks that all ranks' programs fit
// together.
KernelChoices choose_kernels(const RunSpec& spec, const DataInfo& data, const BatchSizes& sizes,
                             const std::string& known_choices, Backend& backend, World& world, Stream& stream) {
  const bool first = world.rank() == 0;
  std::vector<RunPrograms> programs;
  if (first) programs = build_all_programs(spec, data, strategy_for(spec, data, world.size(), backend), sizes);
  KernelChoices choices = first ? load_kernel_choices(backend.fingerprint()) : KernelChoices{};
  const KernelChoices kept = choices;
  if (first) choices.add(known_choices);
  if (first && choices.empty() && backend.asynchronous()) {
    log::info(format("timing kernels on {}: once, their choice is kept", backend.fingerprint()));
  }
  CountProgress progress("timing kernels, once for this machine", 0);
  choices.watch_timing([&progress](const std::string&) { progress.next(); });
  const KernelChoices agreed = agree_on_choices(choices, programs, backend, world.communicator(), stream);
  if (first && !(choices == kept)) keep_kernel_choices(backend.fingerprint(), choices);
  return agreed;
}

// The programs of this rank, where all ranks are about to do the same.
RunPrograms agreed_programs(const RunSpec& spec, const DataInfo& data, RankDevice& device, World& world,
                            const DataPosition& start) {
  const Strategy strategy = strategy_for(spec, data, world.size(), *device.backend);
  require_layers_within_hosts(spec.strategy, strategy.mesh, world.hosts());
  const BatchSizes sizes = batch_sizes(spec.train, spec.strategy, data, world.size(), start);
  if (world.size() > 1) {
    const RunPrograms first = build_programs(spec, data, strategy, sizes, 0);
    require_same_on_all(job_facts(data, *device.backend, first.programs()), world.hosts(), world.communicator(),
                        device.host);
  }
  return build_programs(spec, data, strategy, sizes, world.rank());
}

BatchCut cut_of(const RunSpec& spec, const DataInfo& data, const MeshRank& rank) {
  return batch_cut(batch_sizes(spec.train, spec.strategy, data, rank.mesh.ranks()), rank);
}

// Programs that may fit, or Error{resource}: before kernels are looked for, which want sizes that a machine can have.
RunPrograms require_least_memory(RunPrograms programs, const RunSpec& spec, const DataInfo& data,
                                 const Backend& backend, const World& world) {
  // The host's memory is for all its ranks, none of which has taken any yet.
  const std::int64_t free = memory_of_rank(spec.cluster, backend, world.local_size());
  const BatchCut cut = cut_of(spec, data, programs.rank());
  require_fit(least_memory(programs.programs()), free, cut, Need::least);
  return programs;
}

// All of it, or Error{resource} with what would fit.
Compiled require_memory(Compiled compiled, const RunSpec& spec, const DataInfo& data, const Backend& backend,
                        const MeshRank& rank) {
  require_fit(compiled.memory, memory_of_rank(spec.cluster, backend, 1), cut_of(spec, data, rank));
  return compiled;
}

}  // namespace

Job::Job(const RunSpec& spec, const DataInfo& data, RankDevice& device, World& world, const DataPosition& start,
         const std::string& known_choices)
    : device_(device),
      world_(world),
      program_spec_(trainctl::program_spec(spec, data)),
      programs_(
          require_least_memory(agreed_programs(spec, data, device, world, start), spec, data, *device.backend, world)),
      choices_(choose_kernels(spec, data, batch_sizes(spec.train, spec.strategy, data, world.size(), start),
                              known_choices, *device.backend, world, device.host)),
      axes_(device.communicator(world), rank().mesh),
      engine_(std::make_unique<Engine>(
          *device.backend, axes_.communicators(),
          require_memory(compile_rank(programs_.programs(), spec, data, world.size(), *device.backend, choices_), spec,
                         data, *device.backend, rank()))) {}

void initialize_engine(const RunSpec& spec, Job& job) {
  job.engine().download();
  initialize_weights(job.program_spec(), spec.seed, job.engine().weights());
  job.engine().upload();
}

}  // namespace trainctl
