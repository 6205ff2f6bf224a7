// Builds the tables and the JSON object of a checked config.
#include "run/job/checked_report.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "core/program/dump.h"
#include "parallel/trainer/recompute_choice.h"
#include "run/job/checked.h"
#include "run/job/mesh_table.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

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
        "\nbatch normalization computes its statistics over the {} of each logical shard, for any number of "
        "ranks\n",
        counted(shards.samples, "sample"));
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

}  // namespace

Json to_json(const Checked& checked) {
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
  return json;
}

std::string to_text(const RunSpec& spec, const Checked& checked) {
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
  text += format("\n{}, {} of them trainable; {} per sample in the forward pass\n",
                 counted(checked.parameters, "parameter"), grouped(checked.trainable),
                 flops_text(checked.flops_per_sample));
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
  return phases_text(checked) + text + memory.text() + mesh_text(checked) + notes(spec, checked);
}

std::string dumped_programs(const Checked& checked, std::optional<int> of_rank, bool as_graph) {
  const int rank = of_rank.value_or(checked.ranks - 1);
  if (rank >= checked.ranks) {
    throw Error(ErrorKind::config, format("there is no rank {}: {} ranks are numbered from 0", rank, checked.ranks));
  }
  const MeshRank mesh_rank(checked.mesh, rank);
  const auto& programs = programs_of(checked.programs, checked.sizes, mesh_rank).programs();
  if (as_graph) return dump_dot(programs.front());
  std::string text;
  for (const Program& program : programs) text += dump(program) + "\n";
  return text;
}

}  // namespace trainctl
