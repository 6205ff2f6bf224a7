// trainctl check: every error of a config at once, then its layers and the memory of a rank. Starts nothing,
// runs no kernel, and takes no memory for the network.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <set>

#include "cmd/job.h"
#include "cmd/subcommands.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "core/compile/memory_fit.h"
#include "core/compile/memory_plan.h"
#include "core/program/dump.h"
#include "io/kernels/kernel_cache.h"
#include "io/loader/data.h"
#include "io/metrics/count_progress.h"
#include "parallel/launch/report.h"
#include "parallel/trainer/batch_sizes.h"
#include "parallel/trainer/device.h"

namespace trainctl {
namespace {

struct CheckOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string dump;
  bool measure = false;
};

// A stage of a pipeline: its layers, and the memory of the rank that needs most.
struct CheckedStage {
  std::vector<std::string> layers;
  std::int64_t parameters = 0;
  MemoryPlan memory;
};

// The layers, memory and programs of a config on so many ranks.
struct Checked {
  int ranks = 1;
  std::int64_t batch = 0;
  std::vector<Program> programs;  // of the last rank
  MemoryPlan memory;              // of the rank that needs most
  Mesh mesh;
  int micro_batches = 1;             // of a share of a full batch
  std::vector<CheckedStage> stages;  // of a pipeline; one without
  std::set<std::string> recomputed;  // blocks that `recompute: auto` computes again
  std::size_t assumed = 0;           // kernels that are not chosen yet: compute copies and arena may come out otherwise
  bool data_at_hand = true;          // else the config was believed
  std::int64_t least_share = 0;      // samples of a replica in a full batch
  std::int64_t largest_share = 0;
  bool measures_shares = false;  // before training begins: here shares are equal
  std::optional<Error> unfit;    // why a run has too little memory on this machine
  double flops_per_sample = 0;   // forward
  std::int64_t parameters = 0;
  std::int64_t trainable = 0;
};

// The data as it is; where it is not at hand, as far as the config states it, and one full batch stands for the
// samples.
DataInfo data_info(const RunSpec& spec, Checked& checked) {
  try {
    return Data(spec.data, spec.seed, data_use(spec), Data::Measure::no).info();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
  }
  DataInfo info = describe(spec.data, spec.seed, data_use(spec));
  checked.data_at_hand = false;
  if (info.training_samples == 0) info.training_samples = checked.batch;
  if (info.validation_samples == 0 && (spec.data.validation || spec.data.test)) info.validation_samples = checked.batch;
  return info;
}

// Times what is not chosen yet, and keeps it.
void measure_kernels(const std::vector<RunPrograms>& ranks, Backend& backend, KernelChoices& choices) {
  KernelChoices unmeasured = choices;
  unmeasured.stop_timing();
  for (const RunPrograms& rank : ranks) compile(rank.programs(), backend, unmeasured);
  if (unmeasured.assumed() == 0) return;
  CountProgress progress("timing kernels", unmeasured.assumed());
  choices.watch_timing([&progress](const std::string&) { progress.next(); });
  for (const RunPrograms& rank : ranks) compile(rank.programs(), backend, choices);
  keep_kernel_choices(backend.fingerprint(), choices);
}

// The memory of the rank that needs most, of all and of each stage.
void find_memory(const std::vector<RunPrograms>& ranks, const RunSpec& spec, const DataInfo& info, Backend& backend,
                 KernelChoices& choices, Checked& checked) {
  const auto keep_larger = [](MemoryPlan& largest, const MemoryPlan& memory) {
    if (memory.total() >= largest.total()) largest = memory;
  };
  for (const RunPrograms& rank : ranks) {
    const MemoryPlan memory = compile_rank(rank.programs(), spec, info, checked.ranks, backend, choices).memory;
    keep_larger(checked.memory, memory);
    keep_larger(checked.stages[static_cast<std::size_t>(rank.rank().along(MeshAxis::pipeline))].memory, memory);
  }
}

// The layers of each stage, in the order of the table of layers.
std::vector<CheckedStage> stages_of(const Strategy& strategy, const std::vector<LayerLine>& layers) {
  std::vector<CheckedStage> stages(static_cast<std::size_t>(strategy.mesh.pipeline));
  for (const LayerLine& layer : layers) {
    const auto found = strategy.stages.find(layer.name);
    if (found == strategy.stages.end()) continue;  // computes nothing, or there is no pipeline
    CheckedStage& stage = stages[static_cast<std::size_t>(found->second)];
    stage.layers.push_back(layer.name);
    stage.parameters += layer.parameters;
  }
  return stages;
}

// Not known where ranks run elsewhere and the config states nothing.
MemoryLimit memory_limit(const ClusterOptions& cluster, const LaunchPlan& plan, const Backend& backend) {
  if (cluster.memory.is_auto() && !plan.one_host) return {};
  return memory_of_rank(cluster, backend, plan.ranks);
}

Checked check(const RunSpec& spec, const CheckOptions& options) {
  Checked checked;
  const LaunchPlan plan = plan_launch(launch_request(spec.cluster, options.launch));
  checked.ranks = plan.ranks;
  checked.batch = spec.train.global_batch(plan.ranks);
  const DataInfo info = data_info(spec, checked);
  const auto backend = make_backend(spec.cluster, spec.train, plan.threads, 0);
  const BatchSizes sizes = batch_sizes(spec.train, spec.strategy, info, plan.ranks);
  Strategy strategy = strategy_for(spec, info, plan.ranks, *backend);
  std::vector<RunPrograms> ranks = build_all_programs(spec, info, strategy, sizes);
  const auto samples_of = [&sizes](const RunPrograms& rank) { return batch_cut(sizes, rank.rank()).samples; };
  checked.least_share = samples_of(*std::ranges::min_element(ranks, {}, samples_of));
  checked.largest_share = samples_of(*std::ranges::max_element(ranks, {}, samples_of));
  checked.measures_shares = spec.strategy.shares_by_measuring() && strategy.mesh.data > 1;
  checked.programs = ranks.front().programs();
  checked.mesh = strategy.mesh;
  checked.micro_batches = sizes.gradient_accumulation;
  checked.stages = stages_of(strategy, checked.programs.front().layers);
  const BatchCut cut{sizes.training, sizes.gradient_accumulation, checked.largest_share};
  const MemoryLimit limit = memory_limit(spec.cluster, plan, *backend);
  for (const RunPrograms& rank : ranks) require_fit(least_memory(rank.programs()), limit, cut, Need::least);

  KernelChoices choices = load_kernel_choices(backend->fingerprint());
  for (const std::string& warning : info.warnings) log::warning(warning);
  if (options.measure) measure_kernels(ranks, *backend, choices);
  choices.stop_timing();
  checked.recomputed = recomputed_blocks(spec, info, strategy, sizes, limit.bytes, *backend, choices);
  if (!checked.recomputed.empty()) {
    strategy.recomputed = checked.recomputed;
    ranks = build_all_programs(spec, info, strategy, sizes);
    checked.programs = ranks.front().programs();
  }
  find_memory(ranks, spec, info, *backend, choices, checked);
  checked.assumed = choices.assumed();
  try {
    if (checked.assumed == 0) require_fit(checked.memory, limit, cut);
  } catch (const Error& error) {
    checked.unfit = error;
  }
  for (const LayerLine& layer : checked.programs.front().layers) {
    checked.flops_per_sample += layer.flops;
    checked.parameters += layer.parameters;
    checked.trainable += layer.trainable;
  }
  return checked;
}

void print_json(const Checked& checked) {
  Json layers = Json::array();
  for (const LayerLine& layer : checked.programs.front().layers) {
    layers.push_back({{"name", layer.name},
                      {"kind", layer.kind},
                      {"output", layer.output.sizes()},
                      {"parameters", layer.parameters}});
  }
  Json memory;
  for (const MemoryLine& line : checked.memory.lines()) memory[std::string(line.name)] = line.bytes;
  Json stages = Json::array();
  for (const CheckedStage& stage : checked.stages) {
    if (checked.stages.size() == 1) break;
    stages.push_back(
        {{"layers", stage.layers}, {"parameters", stage.parameters}, {"memory_bytes", stage.memory.total()}});
  }
  Json json = {{"ok", true},
               {"errors", Json::array()},
               {"ranks", checked.ranks},
               {"parameters", checked.parameters},
               {"trainable_parameters", checked.trainable},
               {"flops_per_sample", checked.flops_per_sample},
               {"arena_bytes", checked.memory.of(Region::slot)},
               {"memory_bytes", memory},
               {"kernels_not_chosen", checked.assumed},
               {"data_at_hand", checked.data_at_hand},
               {"layers", layers}};
  if (!checked.recomputed.empty()) json["recomputed"] = checked.recomputed;
  if (!stages.empty()) {
    json["stages"] = stages;
    json["micro_batches"] = checked.micro_batches;
  }
  answer(json_line(json));
}

bool normalizes_batches(const Checked& checked) {
  const auto& layers = checked.programs.front().layers;
  return std::any_of(layers.begin(), layers.end(),
                     [](const auto& layer) { return layer.kind == "batch_normalization"; });
}

// Which layers lie on which rank, and what each needs.
std::string stages_text(const Checked& checked) {
  if (checked.mesh.pipeline == 1) return "";
  using Align = Table::Align;
  Table table({{"stage"}, {"ranks"}, {"layers"}, {"parameters", Align::right}, {"memory", Align::right}});
  for (int s = 0; s < checked.mesh.pipeline; ++s) {
    const CheckedStage& stage = checked.stages[static_cast<std::size_t>(s)];
    std::string ranks;
    for (int rank = 0; rank < checked.mesh.ranks(); ++rank) {
      if (checked.mesh.position(rank).pipeline == s) ranks += (ranks.empty() ? "" : " ") + std::to_string(rank);
    }
    const std::string& first = stage.layers.front();
    table.add({std::to_string(s), ranks, stage.layers.size() == 1 ? first : first + " ... " + stage.layers.back(),
               grouped(stage.parameters), byte_text(stage.memory.total())});
  }
  return format("\n{}{} replicas of {} stages, {} micro-batches a step\n", table.text(), checked.mesh.data,
                checked.mesh.pipeline, checked.micro_batches);
}

// Notes that explain the tables.
std::string notes(const Checked& checked) {
  std::string text;
  if (!checked.recomputed.empty()) {
    std::string names;
    for (const std::string& name : checked.recomputed) names += (names.empty() ? "" : ", ") + name;
    text += format("\ncomputed again for the backward pass, to save memory: {}\n", names);
  }
  if (checked.assumed > 0) {
    text += format(
        "\n{} kernels are not chosen yet for this machine, which compute copies and arena depend on; the first run "
        "times them, or --measure\n",
        checked.assumed);
  }
  if (checked.measures_shares) {
    text += "\nreplicas' shares of a batch are measured when training begins; here they are equal\n";
  }
  if (checked.ranks > 1 && normalizes_batches(checked)) {
    const int cut = checked.mesh.pipeline > 1 ? checked.micro_batches : 1;
    const std::int64_t least = checked.least_share / cut, largest = checked.largest_share / cut;
    text += format(
        "\nbatch normalization takes its statistics from the {} samples that a rank has of a batch{}: with another "
        "number of ranks the network trains otherwise\n",
        least == largest ? std::to_string(largest) : format("{} to {}", least, largest),
        checked.mesh.pipeline > 1 ? " at once" : "");
  }
  if (!checked.data_at_hand) {
    text +=
        "\nthe data is not at hand: shape and classes are as the config states them, the number of samples is not "
        "known\n";
  }
  return text;
}

void print_text(const RunSpec& spec, const Checked& checked) {
  using Align = Table::Align;
  Table layers({{"layer"},
                {"kind"},
                {"output"},
                {"parameters", Align::right},
                {"FLOPs/sample", Align::right},
                {"ops", Align::right}});
  for (const LayerLine& layer : checked.programs.front().layers) {
    layers.add({layer.name, layer.kind, to_string(layer.output), grouped(layer.parameters), flops_text(layer.flops),
                std::to_string(layer.ops)});
  }
  std::string text = layers.text();
  text += format("\n{} parameters, {} of them train; {} a sample forward\n", grouped(checked.parameters),
                 grouped(checked.trainable), flops_text(checked.flops_per_sample));
  text += format("{} ranks, {} samples a step, {}\n\n", checked.ranks, checked.batch, name_of(spec.train.compute()));
  Table memory({{"memory of a rank"}, {"bytes", Align::right}, {""}});
  const auto add = [&memory](std::string_view what, std::int64_t bytes, bool exact) {
    memory.add({std::string(what), (exact ? "" : "about ") + grouped(bytes), byte_text(bytes)});
  };
  const bool all_chosen = checked.assumed == 0;
  for (const MemoryLine& line : checked.memory.lines()) {
    add(line.name, line.bytes, all_chosen || !line.depends_on_kernels);
  }
  add(checked.memory.on_host ? "total" : "total on the GPU", checked.memory.total(), all_chosen);
  answer(text + memory.text() + stages_text(checked) + notes(checked));
}

int run_check(CheckOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const Checked checked = check(spec, options);
  if (checked.unfit && options.common.json) throw *checked.unfit;
  if (options.common.json) {
    print_json(checked);
  } else if (options.dump == "program") {
    std::string text;
    for (const Program& program : checked.programs) text += dump(program) + "\n";
    answer(text);
  } else if (!options.common.quiet) {
    print_text(spec, checked);
  }
  if (checked.unfit) throw *checked.unfit;
  return 0;
}

}  // namespace

Subcommand check_subcommand() {
  return {"check", "Checks a config and shows its layers, parameters and memory, without starting anything",
          "trainctl check configs/mnist-cnn.yaml --ranks 4 --set train.batch_size=256", [](CLI::App& app) {
            auto options = std::make_shared<CheckOptions>();
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_flag("--measure", options->measure,
                         "Times the kernels that are not chosen yet, as the first run would: then memory is exact");
            app.add_option("--dump", options->dump, "Shows what the last rank executes, op by op")
                ->check(CLI::IsMember({"program"}));
            return [options] { return run_check(*options); };
          }};
}

}  // namespace trainctl
