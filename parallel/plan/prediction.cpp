// Compiles and simulates the programs of the ranks that differ.
#include "parallel/plan/prediction.h"

#include <algorithm>

#include "core/compile/slot.h"
#include "parallel/trainer/hooks/local_steps.h"
#include "parallel/trainer/options.h"

namespace trainctl {
namespace {

// The contents of a program's slot: tensors, the workspaces of collectives and the workspaces of kernels.
struct SlotBytes {
  std::int64_t activations = 0, communication = 0, workspace = 0;
};

// Returns, for each kind of content, by how many bytes the slot is smaller without it. `all`: the bytes of the slot
// with all contents.
SlotBytes slot_bytes(PlacedProgram program, std::int64_t all) {
  const auto without = [&program](auto is_left_out) {
    for (PlacedSegment& segment : program.segments) {
      for (PlacedOp& op : segment.ops) {
        if (is_left_out(op)) op.lowering.workspace_bytes = 0;
      }
    }
    return place_slot(program);
  };
  const std::int64_t no_kernels = without([](const PlacedOp& op) { return op.op.def->trait() != OpTrait::collective; });
  const std::int64_t tensors = without([](const PlacedOp&) { return true; });
  return {tensors, std::max<std::int64_t>(no_kernels - tensors, 0), all - std::max(no_kernels, tensors)};
}

// Returns the lines of the memory, with the line of the slots divided by their contents in the program with the largest
// slot.
std::vector<MemoryLine> divided_lines(const Compiled& compiled) {
  const MemoryPlan& memory = compiled.memory;
  SlotBytes slot;
  for (const PlacedProgram& program : compiled.programs) {
    PlacedProgram copy = program;
    if (place_slot(copy) < memory.slot_bytes) continue;
    slot = slot_bytes(std::move(copy), memory.slot_bytes);
    break;
  }
  std::vector<MemoryLine> lines;
  for (const MemoryLine& line : memory.lines()) {
    if (line.name != name_of(Region::slot)) {
      lines.push_back(line);
      continue;
    }
    lines.push_back({"activations", memory.slots * slot.activations, true});
    lines.push_back({"workspace", memory.slots * slot.workspace, true});
    lines.push_back({"communication", memory.slots * slot.communication, true});
  }
  return lines;
}

// Compiles the programs of a rank.
Compiled compile_rank(const RunPrograms& programs, const BatchSizes& sizes, const PlanTarget& target) {
  return target.compile(programs.programs(), sizes.training_division(programs.rank()));
}

std::vector<MemoryLine> lines_of(const Compiled& compiled, const PredictionDetails& details) {
  return details.lines ? divided_lines(compiled) : std::vector<MemoryLine>{};
}

PlannedStage plan_stage(const RunPrograms& programs, const BatchSizes& sizes, const PlanTarget& target,
                        const PredictionDetails& details) {
  Compiled compiled = compile_rank(programs, sizes, target);
  std::vector<MemoryLine> lines = lines_of(compiled, details);
  PlacedProgram& training = compiled.programs[static_cast<std::size_t>(programs.training(sizes.training))];
  return {programs, std::move(training), std::move(compiled.memory), std::move(lines)};
}

const Program& training_program(const PlannedStage& stage, const BatchSizes& sizes) {
  return stage.programs.programs()[static_cast<std::size_t>(stage.programs.training(sizes.training))];
}

// Returns the number of elements of a stage's factored optimizer states, without the states of layers that an earlier
// stage shares.
std::int64_t factored_elements(const Program& training, int stage) {
  std::int64_t elements = 0;
  for (const FlatEntry& entry : training.flat.parameters) {
    if (entry.stages.empty() || entry.stages.front() == stage) elements += entry.factors.count();
  }
  return elements;
}

// The number of values that are averaged: parameters, running statistics, optimizer states and moving averages.
std::int64_t averaged_values(const Program& program) {
  const ParameterLayout& flat = program.flat;
  std::int64_t values = 0;
  for (const FlatEntry& entry : flat.parameters) {
    values += entry.count;
    if (entry.gradient != no_tensor) values += flat.kept_of(entry);
  }
  for (const FlatTensor& statistic : flat.statistics) values += program.tensor(statistic.tensor).type.shape.count();
  return values;
}

struct Average {
  double seconds = 0;
  double bytes_sent = 0;
};

// Returns the average of one stage, which is communicated in pieces of `max_averaged_values` values.
Average average_of(const StageRank& stage, const Nodes& nodes, const Costs& costs) {
  Average average;
  for (std::int64_t left = averaged_values(*stage.program); left > 0; left -= max_averaged_values) {
    const Communication piece{
        .kind = Communication::Kind::all_reduce, .axis = MeshAxis::data, .count = std::min(left, max_averaged_values)};
    const Traffic traffic = traffic_of(piece, stage.rank, nodes);
    average.seconds += costs.communication_seconds(traffic).alone();
    average.bytes_sent += bytes_sent(traffic);
  }
  return average;
}

// Adds 1 / `every` of the time and bytes of an average of replicas that train independently for some steps
// (strategy.sync_every; parallel/trainer/hooks/local_steps.h) to a simulated step, and returns the seconds of an
// average. The result is the time of the slowest stage, since the other stages wait for it. Copies between the device's
// memory and the host's, where averages are computed, are not counted. `stages`: as in simulate_step().
double add_average(SimulatedStep& step, int every, const std::vector<StageRank>& stages, const Nodes& nodes,
                   const Costs& costs) {
  if (stages.front().rank.mesh.data == 1) return 0;
  std::vector<Average> averages;
  for (const StageRank& stage : stages) averages.push_back(average_of(stage, nodes, costs));
  const double longest = std::ranges::max(averages, {}, &Average::seconds).seconds;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    step.stages[s].communication += averages[s].seconds / every;
    step.stages[s].bubble += (longest - averages[s].seconds) / every;
    step.bytes_sent[s] += averages[s].bytes_sent / every;
  }
  step.seconds += longest / every;
  return longest;
}

}  // namespace

std::int64_t checkpoint_bytes(const std::vector<const Program*>& stages, bool weights_only) {
  const Program& first = *stages.front();
  const bool factored = first.flat.factored && !weights_only;
  const std::int64_t unfactored = first.flat.factored ? 0 : std::ssize(first.flat.states);
  const std::int64_t states = weights_only ? 0 : unfactored + (first.flat.averages ? 1 : 0);
  std::int64_t elements = 0;
  for (const LayerLine& layer : first.layers) {
    elements += layer.parameters + states * layer.trainable;
  }
  for (std::size_t s = 0; factored && s < stages.size(); ++s) {
    elements += factored_elements(*stages[s], static_cast<int>(s));
  }
  return elements * size_of(DType::float32);
}

const PlannedStage& Prediction::largest() const {
  return *std::max_element(stages.begin(), stages.end(), [](const PlannedStage& a, const PlannedStage& b) {
    return a.memory.total() < b.memory.total();
  });
}

double Prediction::bytes_sent() const { return *std::max_element(step.bytes_sent.begin(), step.bytes_sent.end()); }

PlannedRun plan_run(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, PlannedRanks ranks) {
  const Mesh& mesh = strategy.mesh;
  const auto samples_of = [&](int replica) {
    return share_of(sizes.training, sizes.training_division(MeshRank(mesh, mesh.rank({.data = replica})))).count;
  };
  int replica = 0;
  for (int r = 1; r < mesh.data; ++r) {
    if (samples_of(r) > samples_of(replica)) replica = r;
  }
  std::vector<int> planned;
  const Mesh::Position last = mesh.position(mesh.ranks() - 1).with(MeshAxis::data, replica);
  for (int stage = 0; stage < mesh.pipeline; ++stage) {
    planned.push_back(mesh.rank(last.with(MeshAxis::pipeline, stage)));
  }
  if (ranks == PlannedRanks::own_programs) {
    for (const int rank : ranks_with_own_programs(sizes, mesh)) {
      if (std::find(planned.begin(), planned.end(), rank) == planned.end()) planned.push_back(rank);
    }
  }
  PlannedRun run{strategy, sizes, {}};
  for (const int rank : planned) run.ranks.push_back(build_run_programs(spec, strategy, sizes, rank));
  return run;
}

Prediction predict(const PlannedRun& run, const PlanTarget& target, const PredictionDetails& details) {
  Prediction prediction{.strategy = run.strategy, .sizes = run.sizes};
  const BatchSizes& sizes = prediction.sizes;
  for (const RunPrograms& programs : run.stages()) {
    prediction.stages.push_back(plan_stage(programs, sizes, target, details));
  }
  for (const RunPrograms& programs : run.others()) {
    Compiled compiled = compile_rank(programs, sizes, target);
    PlannedStage& stage = prediction.stages[static_cast<std::size_t>(programs.rank().along(MeshAxis::pipeline))];
    if (compiled.memory.total() <= stage.memory.total()) continue;
    stage.lines = lines_of(compiled, details);
    stage.memory = std::move(compiled.memory);
  }
  std::vector<StageRank> ranks;
  for (const PlannedStage& stage : prediction.stages) {
    ranks.push_back({&training_program(stage, sizes), &stage.training, stage.programs.rank()});
  }
  prediction.step = simulate_step(ranks, target.nodes, *target.costs, details.timeline);
  const int every = prediction.strategy.options.sync_every.value;
  if (every > 1) prediction.averaging = add_average(prediction.step, every, ranks, target.nodes, *target.costs);
  std::vector<const Program*> training;
  for (const PlannedStage& stage : prediction.stages) training.push_back(&training_program(stage, prediction.sizes));
  prediction.checkpoint_bytes = checkpoint_bytes(training);
  return prediction;
}

TrainingLength training_length(const Prediction& prediction, const TrainOptions& train,
                               std::int64_t samples_per_epoch) {
  const std::int64_t batch = prediction.sizes.training;
  const std::int64_t in_epoch = train.steps_per_epoch.value_or((samples_per_epoch + batch - 1) / batch);
  TrainingLength length;
  if (train.epochs) length.steps = *train.epochs * in_epoch;
  if (train.max_steps) length.steps = length.steps == 0 ? *train.max_steps : std::min(length.steps, *train.max_steps);
  length.seconds = static_cast<double>(length.steps) * prediction.step.seconds;
  if (train.max_time && (length.steps == 0 || length.seconds > train.max_time->value)) {
    length.seconds = train.max_time->value;
    length.steps = static_cast<std::int64_t>(length.seconds / prediction.step.seconds);
  }
  return length;
}

}  // namespace trainctl
