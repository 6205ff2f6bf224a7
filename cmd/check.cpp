// trainctl check: reports all errors of a config, then its layers and the memory of a rank. It starts no ranks,
// allocates no memory for the network and, unless --measure is given, runs no kernel.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "cmd/common_options.h"
#include "cmd/mesh_table.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/table.h"
#include "core/program/dump.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/trainer/recompute_choice.h"
#include "run/job/checked.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct CheckOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string dump;         // program, dot, or empty
  std::optional<int> rank;  // the rank whose programs are dumped
  bool measure = false;
};

void print_json(const Checked& checked) {
  Json layers = Json::array();
  for (const LayerLine& layer : checked.layers()) {
    layers.push_back({{"name", layer.name},
                      {"kind", layer.kind},
                      {"output", layer.output.sizes()},
                      {"parameters", layer.parameters},
                      {"trainable_parameters", layer.trainable}});
  }
  Json memory;
  for (const MemoryLine& line : checked.memory.lines()) memory[std::string(line.name)] = line.bytes;
  Json mesh = Json::array();
  for (const CheckedPosition& position : checked.positions) {
    mesh.push_back({{"stage", position.rank.along(MeshAxis::pipeline)},
                    {"part", position.rank.along(MeshAxis::tensor)},
                    {"ranks", ranks_of(position)},
                    {"layers", position.layers},
                    {"parameters", position.parameters},
                    {"memory_bytes", position.memory.total()}});
  }
  Json json = {{"ok", true},
               {"errors", Json::array()},
               {"ranks", checked.ranks},
               {"parameters", checked.parameters},
               {"trainable_parameters", checked.trainable},
               {"flops_per_sample", checked.flops_per_sample},
               {"arena_bytes", checked.memory.of(Region::slot)},
               {"memory_bytes", memory},
               {"shared_memory_bytes", checked.shared_memory},
               {"kernels_not_chosen", checked.assumed},
               {"data_at_hand", checked.data_at_hand},
               {"micro_batches", checked.micro_batches()},
               {"cached_bytes", checked.cached_bytes},
               {"mesh", mesh},
               {"layers", layers}};
  if (!checked.recomputed.empty()) json["recomputed"] = checked.recomputed;
  for (const CheckedPhase& phase : checked.phases) {
    json["phases"].push_back(
        {{"phase", phase.text}, {"trainable_parameters", phase.trainable}, {"memory_bytes", phase.memory}});
  }
  if (checked.automatic) json["strategy"] = "auto";  // not chosen yet: the mesh is that of data parallelism
  answer(json_line(json));
}

// A table of the phases of a run, followed by a heading for the phase that needs the most memory, which is shown next.
std::string phases_text(const Checked& checked) {
  if (checked.phases.empty()) return "";
  TextTable table(
      {{"phase"}, {"trainable parameters", TextTable::Align::right}, {"memory of a rank", TextTable::Align::right}});
  for (const CheckedPhase& phase : checked.phases) {
    table.add({phase.text, grouped(phase.trainable), byte_text(phase.memory)});
  }
  return table.text() + "\nThe phase that needs the most memory:\n\n";
}

// Tells over which samples batch normalization computes its statistics if replicas do not exchange theirs.
std::string statistics_text(const Checked& checked) {
  const LogicalShards& shards = checked.sizes.shards;
  if (shards.any()) {
    return format(
        "\nbatch normalization computes its statistics over the {} samples of each logical shard, for any number of "
        "ranks\n",
        shards.samples);
  }
  const int micro_batches = checked.micro_batches();
  const std::int64_t least = checked.least_share / micro_batches, largest = checked.largest_share / micro_batches;
  return format(
      "\nbatch normalization computes its statistics over the {} samples that a rank has of a {}: on another number of "
      "ranks the network trains differently\n",
      least == largest ? std::to_string(largest) : format("{} to {}", least, largest),
      micro_batches > 1 ? "micro-batch" : "batch");
}

// Notes that explain the tables.
std::string notes(const RunSpec& spec, const Checked& checked) {
  std::string text;
  if (checked.cached_bytes > 0) {
    text += format("\n`cache: {}` takes {}{} once all samples have been read\n", name_of(spec.data.cache),
                   byte_text(checked.cached_bytes),
                   spec.data.cache == CacheKind::memory ? " of each rank, in addition to the memory above," : "");
  }
  if (!checked.recomputed.empty()) text += "\n" + recomputed_text(checked.recomputed);
  if (checked.assumed > 0) {
    text += format(
        "\n{} not chosen yet for this machine, and the memory of converted weights, activations and workspace depends "
        "on them: the first run times them, and so does --measure\n",
        counted(static_cast<std::int64_t>(checked.assumed), "kernel") + (checked.assumed == 1 ? " is" : " are"));
  }
  if (checked.measures_shares) {
    text += "\nthe replicas' shares of a batch are measured when training begins; here they are assumed to be equal\n";
  }
  if (checked.ranks > 1 && checked.normalizes_own_samples) text += statistics_text(checked);
  if (checked.automatic) {
    text +=
        "\n`strategy: auto` chooses when a run starts; data parallelism is shown here, and `trainctl plan` shows the "
        "alternatives\n";
  }
  if (!checked.data_at_hand) {
    text +=
        "\nthe data is not available here: shape and classes are those of the config, and the number of samples is not "
        "known\n";
  }
  return text;
}

void print_text(const RunSpec& spec, const Checked& checked) {
  using Align = TextTable::Align;
  const bool freezes = checked.trainable < checked.parameters;
  std::vector<TextTable::Column> columns{{"layer"}, {"kind"}, {"output"}, {"parameters", Align::right}};
  if (freezes) columns.push_back({"train", Align::right});
  for (const char* title : {"FLOPs/sample", "ops"}) columns.push_back({title, Align::right});
  TextTable layers(std::move(columns));
  for (const LayerLine& layer : checked.layers()) {
    std::vector<std::string> cells{layer.name, layer.kind, to_string(layer.output), grouped(layer.parameters)};
    if (freezes) cells.push_back(layer.trainable < layer.parameters ? "frozen" : grouped(layer.trainable));
    cells.insert(cells.end(), {flops_text(layer.flops), std::to_string(layer.ops)});
    layers.add(std::move(cells));
  }
  std::string text = layers.text();
  text += format("\n{} parameters, {} of them trainable; {} per sample in the forward pass\n",
                 grouped(checked.parameters), grouped(checked.trainable), flops_text(checked.flops_per_sample));
  text += format("{}, {} a step, {}\n\n", counted(checked.ranks, "rank"), counted(checked.batch, "sample"),
                 name_of(spec.train.compute()));
  TextTable memory({{"memory of a rank"}, {"bytes", Align::right}, {""}});
  const auto add = [&memory](std::string_view what, std::int64_t bytes, bool exact) {
    memory.add({std::string(what), (exact ? "" : "about ") + grouped(bytes), byte_text(bytes)});
  };
  const bool all_chosen = checked.assumed == 0;
  for (const MemoryLine& line : checked.memory.lines()) {
    if (line.bytes > 0) add(line.name, line.bytes, all_chosen || !line.depends_on_kernels);
  }
  add(checked.memory.on_host ? "total" : "total on the GPU", checked.memory.total(), all_chosen);
  if (checked.shared_memory > 0) add(shared_memory_line, checked.shared_memory, true);
  answer(phases_text(checked) + text + memory.text() + mesh_text(checked) + notes(spec, checked));
}

// The programs of the rank that --dump-rank names, as text; as a graph, only the program of a full training batch.
std::string dumped(const Checked& checked, const CheckOptions& options) {
  const int rank = options.rank.value_or(checked.ranks - 1);
  if (rank >= checked.ranks) {
    throw Error(ErrorKind::config, format("there is no rank {}: {} ranks are numbered from 0", rank, checked.ranks));
  }
  const MeshRank mesh_rank(checked.mesh, rank);
  const auto& programs = programs_of(checked.programs, checked.sizes, mesh_rank).programs();
  if (options.dump == "dot") return dump_dot(programs.front());
  std::string text;
  for (const Program& program : programs) text += dump(program) + "\n";
  return text;
}

int run_check(CheckOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const Checked checked = check_config(spec, options.launch, options.measure);
  if (checked.unfit && options.common.json) throw *checked.unfit;
  if (options.common.json) {
    print_json(checked);
  } else if (!options.dump.empty()) {
    answer(dumped(checked, options));
  } else if (!options.common.quiet) {
    print_text(spec, checked);
  }
  if (checked.unfit) throw *checked.unfit;
  return 0;
}

}  // namespace

Subcommand check_subcommand() {
  return {"check", "Checks a config and shows its layers, parameters and memory, without starting anything",
          "trainctl check mnist.yaml --ranks 4 --set train.batch_size=256", [](CLI::App& app) {
            auto options = std::make_shared<CheckOptions>();
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_flag("--measure", options->measure,
                         "Times the kernels that are not chosen yet, as the first run would, so that memory is exact");
            app.add_option("--dump", options->dump,
                           "Shows what a rank executes, op by op: program as text, dot as a graph of its training step "
                           "for Graphviz")
                ->check(one_of({"program", "dot"}));
            app.add_option("--dump-rank", options->rank, "The rank that --dump shows; default: the last one")
                ->check(CLI::NonNegativeNumber);
            return [options] { return run_check(*options); };
          }};
}

}  // namespace trainctl
