// Job: puts together what one rank needs.
#include "cmd/job.h"

#include <algorithm>
#include <map>

#include "cmd/kernel_cache.h"
#include "cmd/memory_fit.h"
#include "core/backend/select.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/layers/model.h"
#include "core/program/dump.h"
#include "io/loader/data.h"
#include "io/metrics/count_progress.h"
#include "parallel/comm/same_on_all.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

// Rank 0 chooses implementations: those of the checkpoint, those kept for this hardware, and timed ones for what is
// new, also for the batch sizes that only other ranks have.
KernelChoices agree_on_choices(const RunSpec& spec, const DataInfo& data, const Strategy& strategy,
                               const BatchSizes& sizes, const std::string& known_choices, Backend& backend,
                               World& world, Stream& stream) {
  KernelChoices choices;
  if (world.rank() == 0) {
    choices = load_kernel_choices(backend.fingerprint());
    const KernelChoices kept = choices;
    choices.add(known_choices);
    if (choices.empty() && backend.asynchronous()) {
      log::info(format("timing kernels on {}: once, their choice is kept", backend.fingerprint()));
    }
    CountProgress progress("timing kernels, once for this machine", 0);
    choices.watch_timing([&progress](const std::string&) { progress.next(); });
    for (const int rank : ranks_with_own_programs(sizes, strategy.mesh)) {
      compile(build_programs(spec, data, strategy, sizes, rank).programs(), backend, choices);
    }
    if (!(choices == kept)) keep_kernel_choices(backend.fingerprint(), choices);
  }
  KernelChoices agreed;
  agreed.add(broadcast_text(choices.used().text(), 0, world.communicator(), stream));
  return agreed;
}

// What decides how all ranks compute and communicate, as this rank has found it: its data, and the programs of rank 0.
RankFacts job_facts(const RunSpec& spec, const DataInfo& data, const Strategy& strategy, const BatchSizes& sizes,
                    const Backend& backend) {
  RankFacts facts = {{"the device", std::string(backend.name())},
                     {"the shape of samples", to_string(data.sample)},
                     {"the shape of targets", to_string(data.target)},
                     {"the number of classes", std::to_string(data.classes)},
                     {"the number of training samples", std::to_string(data.training_samples)},
                     {"the number of validation samples", std::to_string(data.validation_samples)},
                     {"the data's fingerprint", data.fingerprint}};
  for (std::size_t i = 0; i < data.class_names.size(); ++i) {
    facts.emplace_back(format("class {}", i), data.class_names[i]);
  }
  const RunPrograms programs = build_programs(spec, data, strategy, sizes, 0);
  for (const Program& program : programs.programs()) {
    const std::string text = dump(program);
    facts.emplace_back(format("the program '{}'", program.name), format("{:016x}", xxh3(text.data(), text.size())));
  }
  return facts;
}

// Every rank's part of a full batch is cut into micro-batches of one size.
void check_accumulation(const BatchSizes& sizes, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t samples = share_of(sizes.training, replica(rank, ranks)).count;
    if (samples % sizes.gradient_accumulation == 0) continue;
    throw Error(ErrorKind::config,
                format("train.gradient_accumulation: {} does not divide the {} samples that rank {} has of each batch "
                       "of {}",
                       sizes.gradient_accumulation, samples, rank, sizes.training),
                "choose a batch size that is a multiple of ranks times gradient_accumulation");
  }
}

}  // namespace

ProgramSpec program_spec(const RunSpec& spec, const DataInfo& data) {
  ProgramSpec programs;
  programs.model = &spec.model;
  programs.sample = data.sample;
  programs.format = data.format;
  programs.classes = data.classes;
  programs.target = data.target;
  programs.weight = data.weight;
  programs.label_mode = data.label_mode;
  programs.loss = spec.train.loss;
  programs.metrics = {spec.train.metrics.begin(), spec.train.metrics.end()};
  programs.optimizer = spec.train.optimizer;
  programs.clip_norm = spec.train.clip_norm.value_or(0);
  programs.compute = spec.train.compute();
  programs.seed = spec.seed;
  return programs;
}

BatchSizes batch_sizes(const RunSpec& spec, const DataInfo& data, int ranks, const DataPosition& start) {
  const std::int64_t batch = spec.train.global_batch(ranks);
  BatchSizes sizes;
  sizes.training = std::min(batch, data.training_samples);
  sizes.training_last = data.training_samples % batch;
  sizes.training_resumed_last = std::max<std::int64_t>(data.training_samples - start.offset, 0) % batch;
  sizes.evaluation = std::min(batch, data.validation_samples);
  sizes.evaluation_last = data.validation_samples % batch;
  sizes.gradient_accumulation = static_cast<int>(spec.train.gradient_accumulation);
  check_accumulation(sizes, ranks);
  return sizes;
}

Strategy strategy_for(const RunSpec& spec, int ranks, const Backend& backend) {
  // On the CPU a reduction takes the cores from the computation that it would hide behind: one after the other is
  // faster.
  return {mesh_of(spec.strategy, ranks), spec.strategy, spec.strategy.overlap.or_else(!backend.on_host())};
}

RunPrograms build_programs(const RunSpec& spec, const DataInfo& data, const Strategy& strategy, const BatchSizes& sizes,
                           int rank) {
  Reader reader;
  RunPrograms programs(program_spec(spec, data), strategy, sizes, rank, reader);
  reader.throw_if_failed();
  return programs;
}

Compiled compile_rank(const std::vector<Program>& programs, const RunSpec& spec, const DataInfo& data, int ranks,
                      Backend& backend, KernelChoices& choices) {
  Compiled compiled = compile(programs, backend, choices);
  compiled.memory.prefetched =
      batch_bytes(spec.data, data, spec.train.global_batch(ranks), ranks, programs.front().target_form);
  return compiled;
}

void initialize_weights(const ProgramSpec& spec, std::uint64_t seed, const std::vector<NamedTensor>& weights) {
  Reader reader;
  const Graph graph =
      build_model(*spec.model, {.sample = spec.sample, .format = spec.format, .seed = seed}, reader).graph;
  reader.throw_if_failed();
  std::map<std::string, float*> memory;
  for (const NamedTensor& tensor : weights) memory[tensor.name] = tensor.view.as<float>();
  for (const GraphParameter& parameter : graph.parameters) {
    const Tensor& tensor = graph.tensor(parameter.tensor);
    initialize(parameter, tensor, seed, memory.at(tensor.name));
  }
  for (const GraphStatistic& statistic : graph.statistics) {
    const Tensor& tensor = graph.tensor(statistic.moving);
    std::fill_n(memory.at(tensor.name), tensor.type.shape.count(), statistic.initial);
  }
}

namespace {

// The programs of this rank, where all ranks are about to do the same.
RunPrograms agreed_programs(const RunSpec& spec, const DataInfo& data, RankDevice& device, World& world,
                            const DataPosition& start) {
  const Strategy strategy = strategy_for(spec, world.size(), *device.backend);
  const BatchSizes sizes = batch_sizes(spec, data, world.size(), start);
  if (world.size() > 1) {
    require_same_on_all(job_facts(spec, data, strategy, sizes, *device.backend), world.hosts(), world.communicator(),
                        device.host);
  }
  return build_programs(spec, data, strategy, sizes, world.rank());
}

BatchCut cut_of(const RunSpec& spec, const DataInfo& data, const MeshRank& rank) {
  const std::int64_t batch = batch_sizes(spec, data, rank.mesh.ranks()).training;
  return {batch, spec.train.gradient_accumulation, share_of(batch, rank).count};
}

// Programs that may fit, or Error{resource}: before kernels are looked for, which want sizes that a machine can have.
RunPrograms require_least_memory(RunPrograms programs, const RunSpec& spec, const DataInfo& data,
                                 const Backend& backend, const World& world) {
  // The host's memory is for all its ranks, none of which has taken any yet.
  const std::int64_t free = backend.free_memory() / (backend.on_host() ? world.local_size() : 1);
  const BatchCut cut = cut_of(spec, data, programs.rank());
  require_fit(least_memory(programs.programs()), free, cut, Need::least);
  return programs;
}

// All of it, or Error{resource} with what would fit.
Compiled require_memory(Compiled compiled, const RunSpec& spec, const DataInfo& data, const Backend& backend,
                        const MeshRank& rank) {
  require_fit(compiled.memory, backend.free_memory(), cut_of(spec, data, rank));
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
      choices_(agree_on_choices(spec, data, strategy_for(spec, world.size(), *device.backend),
                                batch_sizes(spec, data, world.size(), start), known_choices, *device.backend, world,
                                device.host)),
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
