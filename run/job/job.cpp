// Builds the programs of a rank, chooses its kernels and creates its engine.
#include "run/job/job.h"

#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/memory_folder.h"
#include "core/compile/memory_fit.h"
#include "core/metrics/choices.h"
#include "core/optim/optimizer.h"
#include "io/loader/data.h"
#include "io/metrics/count_progress.h"
#include "parallel/checkpoint/staged_saver.h"
#include "parallel/checkpoint/written_bytes.h"
#include "parallel/comm/text.h"
#include "parallel/plan/prediction.h"
#include "parallel/strategies/op_cost.h"
#include "parallel/trainer/batch_sizes.h"
#include "parallel/trainer/initial_weights.h"
#include "parallel/trainer/recompute_choice.h"
#include "run/job/device.h"
#include "run/job/kept_kernels.h"
#include "run/run_spec.h"

namespace trainctl {

namespace {

// `outputs`: the names of the model's outputs. In losses, the name of the only output is replaced by "output".
std::vector<ProgramSpec::Player> players_of(const TrainOptions& train, const std::vector<std::string>& outputs) {
  std::vector<ProgramSpec::Player> players;
  for (const PlayerList::Item& item : train.players.items) {
    const Choice& optimizer = item.value.optimizer ? item.value.optimizer : train.optimizer;
    const double rate = optimizer.as<OptimizerOptions>().learning_rate;
    std::vector<Reference> losses = losses_of(item);
    for (Reference& loss : losses) {
      if (outputs.size() == 1 && loss.name == outputs[0]) loss.name = "output";
    }
    players.push_back({item.name, std::move(losses), item.value.trains.items, optimizer,
                       rate / train.optimizer.as<OptimizerOptions>().learning_rate, static_cast<int>(item.value.steps),
                       item.location});
  }
  return players;
}

}  // namespace

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
  programs.is_masked = data.is_masked;
  programs.loss_reduction = spec.train.loss_reduction;
  programs.optimizer = spec.train.optimizer;
  programs.players = players_of(spec.train, names);
  for (const auto& [name, location, teacher] : spec.train.teachers.items) {
    programs.teachers.push_back({name, teacher.of.name, teacher.momentum, location});
  }
  if (spec.train.moving_average) programs.moving_average = static_cast<float>(spec.train.moving_average->momentum);
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
    if (error.kind() != ErrorKind::data || is_here(spec.data)) throw;
  }
  DataInfo info = describe(spec.data, spec.seed, data_use(spec));
  at_hand = false;
  if (info.training_samples == 0) info.training_samples = batch;
  if (info.validation_samples == 0 && (spec.data.validation || spec.data.test)) info.validation_samples = batch;
  return info;
}

Strategy strategy_for(const RunSpec& spec, const DataInfo& data, int ranks, const DeviceTraits& device) {
  // On the CPU a reduction would take cores from the computation that it overlaps with: one after the other is faster.
  Strategy strategy{mesh_of(spec.strategy, ranks), spec.strategy, spec.strategy.overlap.or_else(!device.on_host),
                    device.compute_streams};
  if (strategy.mesh.pipeline == 1) return strategy;
  constexpr std::int64_t micro_batch = 8;  // samples for which stages are balanced, equal for all batches and runs
  Reader reader;
  const Graph graph = build_model(spec.model, {.batch = micro_batch, .inputs = data.inputs}, reader).graph;
  reader.throw_if_failed();
  strategy.stages = assign_stages(graph, spec.strategy, strategy.mesh.pipeline, byte_costs(device.on_host), reader);
  reader.throw_if_failed();
  return strategy;
}

RunPrograms build_programs(const RunSpec& spec, const DataInfo& data, const Strategy& strategy, const BatchSizes& sizes,
                           int rank) {
  return build_run_programs(program_spec(spec, data), strategy, sizes, rank);
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

std::int64_t staged_bytes(const Compiled& compiled, const CheckpointOptions& options, const MeshRank& rank) {
  const WrittenBytes bytes = written_bytes(compiled.programs.front().program, rank);
  return options.background_savers() * StagedSaver::copies * (bytes.weights + (options.weights_only ? 0 : bytes.state));
}

std::int64_t shared_memory_bytes(const std::vector<const Program*>& stages, const CheckpointOptions& options) {
  return options.memory_every ? copies_in_memory * checkpoint_bytes(stages, options.weights_only) : 0;
}

Compiled with_host_memory(Compiled compiled, const RunSpec& spec, const DataInfo& data, const BatchDivision& division) {
  if (data.training_samples > 0) compiled.memory.staged = staged_bytes(compiled, spec.checkpoint, division.rank);
  compiled.memory.prefetched = batch_bytes(spec.data, data, spec.train.global_batch(division.rank.mesh.ranks()),
                                           division, compiled.programs.front().program.target_encodings);
  return compiled;
}

Compiled compile_rank(const std::vector<Program>& programs, const RunSpec& spec, const DataInfo& data,
                      const BatchDivision& division, Backend& backend, KernelChoices& choices) {
  return with_host_memory(compile(programs, backend, choices), spec, data, division);
}

std::set<std::string> recomputed_blocks(const RunSpec& spec, const DataInfo& data, const Strategy& strategy,
                                        const BatchSizes& sizes, std::int64_t limit, Backend& backend,
                                        KernelChoices choices) {
  if (spec.strategy.recompute != Recompute::automatic) return {};
  choices.stop_timing();
  const BatchDivision anyone = sizes.training_division(MeshRank(strategy.mesh, 0));
  return choose_recomputed(program_spec(spec, data), strategy, sizes, limit, byte_costs(backend.on_host()),
                           [&](const std::vector<Program>& programs) {
                             return compile_rank(programs, spec, data, anyone, backend, choices).memory.total();
                           });
}

AgreedKernels choose_kernels(const RunSpec& spec, const DataInfo& data, const Strategy& strategy,
                             const BatchSizes& sizes, const std::string& known_choices, Backend& backend, World& world,
                             Stream& stream) {
  const bool first = world.rank() == 0;
  std::vector<RunPrograms> programs;
  if (first) programs = build_all_programs(spec, data, strategy, sizes);
  KernelChoices choices = first ? kept_kernels(spec, backend) : KernelChoices{};
  const KernelChoices kept = choices;
  if (first && times_kernels(spec.train, spec.strategy)) choices.add(known_choices);
  if (first && choices.empty() && backend.asynchronous()) {
    log::info(format("timing kernels on {}: once, then their choice is kept", backend.fingerprint()));
  }
  CountProgress progress("timing kernels, once for this machine", 0);
  choices.watch_timing([&progress](const std::string&) { progress.next(); });
  AgreedKernels agreed = agree_on_kernels(choices, programs, backend, world.communicator(), stream);
  if (first && !(choices == kept)) keep_kernels(spec, backend, choices);
  return agreed;
}

namespace {

// Builds the programs of this rank, after a check that all ranks have the same job.
RunPrograms agreed_programs(const RunSpec& spec, const DataInfo& data, const Strategy& strategy, RankDevice& device,
                            World& world, const DataPosition& start) {
  require_layers_within_hosts(spec.strategy, strategy.mesh, world.hosts());
  const BatchSizes sizes = batch_sizes(spec.model, spec.train, spec.strategy, data, world.size(), start);
  if (world.size() > 1) {
    Strategy comparable = strategy;  // compute_streams depends on the threads of each rank
    comparable.compute_streams = 1;
    const RunPrograms first = build_programs(spec, data, comparable, sizes, 0);
    require_same_on_all(job_values(data, *device.backend, first.programs()), world.hosts(), world.communicator(),
                        device.host);
  }
  return build_programs(spec, data, strategy, sizes, world.rank());
}

BatchCut cut_of(const RunSpec& spec, const DataInfo& data, const MeshRank& rank) {
  return batch_cut(batch_sizes(spec.model, spec.train, spec.strategy, data, rank.mesh.ranks()), rank);
}

// Returns the programs, or throws Error{resource} if they cannot fit into memory. Called before kernels are chosen,
// which requires sizes that the machine can hold.
RunPrograms require_least_memory(RunPrograms programs, const RunSpec& spec, const DataInfo& data,
                                 const RankDevice& device) {
  const MemoryLimit limit = memory_of_rank(spec.cluster, *device.backend, device.sharing);  // none is allocated yet
  const BatchCut cut = cut_of(spec, data, programs.rank());
  require_fit(least_memory(programs.programs()), limit, cut, Need::least);
  return programs;
}

// Returns the compiled programs, or throws Error{resource}, which tells what would fit.
Compiled require_memory(Compiled compiled, const RunSpec& spec, const DataInfo& data, const Backend& backend,
                        const MeshRank& rank) {
  // Other ranks of this host may have allocated theirs already.
  require_fit(compiled.memory, memory_of_rank(spec.cluster, backend, 1), cut_of(spec, data, rank));
  return compiled;
}

// Returns the blocks to compute again. Rank 0 finds them for the rank with the least memory and sends them to the
// others, one per line.
std::set<std::string> agreed_blocks(const RunSpec& spec, const DataInfo& data, const Strategy& strategy,
                                    const BatchSizes& sizes, RankDevice& device, World& world,
                                    const KernelChoices& choices) {
  if (spec.strategy.recompute != Recompute::automatic) return {};
  const std::int64_t limit = memory_of_every_rank(spec.cluster, device, world);
  std::string text;
  if (world.rank() == 0) {
    for (const std::string& name : recomputed_blocks(spec, data, strategy, sizes, limit, *device.backend, choices))
      text += name + "\n";
  }
  text = broadcast_text(text, 0, world.communicator(), device.host);
  std::set<std::string> blocks;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    blocks.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return blocks;
}

}  // namespace

void check_job(const RunSpec& spec, const DataInfo& data, RankDevice& device, World& world, const DataPosition& start) {
  const Strategy strategy = strategy_for(spec, data, world.size(), *device.backend);
  require_least_memory(agreed_programs(spec, data, strategy, device, world, start), spec, data, device);
}

Job::Job(const RunSpec& spec, const DataInfo& data, RankDevice& device, World& world, const DataPosition& start,
         const std::string& known_choices)
    : device_(device),
      world_(world),
      program_spec_(trainctl::program_spec(spec, data)),
      strategy_(strategy_for(spec, data, world.size(), *device.backend)),
      speeds_(speeds_of(spec.strategy, strategy_.mesh)),
      shards_(shards_of(spec.train, spec.strategy, world.size())),
      programs_(require_least_memory(agreed_programs(spec, data, strategy_, device, world, start), spec, data, device)),
      axes_(device.communicator(world), rank().mesh, own_backward(*device.backend, device.communicator(world))) {
  const BatchSizes sizes = batch_sizes(spec.model, spec.train, spec.strategy, data, world.size(), start);
  const auto choose = [&] {
    kernels_ = choose_kernels(spec, data, strategy_, sizes, known_choices, *device.backend, world, device.host);
  };
  choose();
  strategy_.recomputed = agreed_blocks(spec, data, strategy_, sizes, device, world, kernels_.choices);
  if (!strategy_.recomputed.empty()) {
    programs_ = build_programs(spec, data, strategy_, sizes, world.rank());
    choose();
  }
  Compiled compiled = compile_rank(programs_.programs(), spec, data, division(), *device.backend, kernels_.choices);
  engine_ = std::make_unique<Engine>(*device.backend, axes_.communicators(),
                                     require_memory(std::move(compiled), spec, data, *device.backend, rank()));
}

void initialize_engine(const RunSpec& spec, Job& job) {
  job.engine().download();
  initialize_weights(job.program_spec(), spec.seed, job.engine().weights());
  job.engine().begin_at_weights();
  job.engine().upload();
}

}  // namespace trainctl
