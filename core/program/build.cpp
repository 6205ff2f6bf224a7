// Builds the program of one rank from a network: cuts the graph, builds segments, distributes and finishes them.
#include "core/program/build.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/passes/cache_positions.h"
#include "core/graph/passes/fuse.h"
#include "core/optim/optimizer.h"
#include "core/program/builder.h"
#include "core/program/finish.h"
#include "core/program/output_head.h"
#include "core/program/placements.h"
#include "core/program/player_network.h"
#include "core/program/players.h"

namespace trainctl {
namespace {

// Returns the layout of a training program with the tensors of another program, matched by name. Sums and gradients
// that are missing in the other program are left out.
ParameterLayout same_layout(const Program& training, const std::vector<Tensor>& tensors) {
  std::map<std::string_view, TensorId> by_name;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Role role = tensors[i].role;
    if (role == Role::parameter || role == Role::statistic || role == Role::reduced) {
      by_name.emplace(tensors[i].name, static_cast<TensorId>(i));
    }
  }
  const auto find = [&](TensorId id) {
    const auto found = by_name.find(training.tensor(id).name);
    return found == by_name.end() ? no_tensor : found->second;
  };

  ParameterLayout layout = training.flat;
  for (FlatEntry& entry : layout.parameters) {
    entry.parameter = find(entry.parameter);
    entry.gradient = no_tensor;
    require(entry.parameter != no_tensor, "a program does not have all parameters of the run");
    require(tensors[static_cast<std::size_t>(entry.parameter)].type.shape.count() == entry.count,
            "programs of a run have different shards of a parameter");
  }
  for (FlatTensor& statistic : layout.statistics) {
    statistic.tensor = find(statistic.tensor);
    require(statistic.tensor != no_tensor, "a program does not have all running statistics of the run");
  }
  for (FlatTensor& sum : layout.reduced) sum.tensor = find(sum.tensor);
  std::erase_if(layout.reduced, [](const FlatTensor& sum) { return sum.tensor == no_tensor; });
  for (FlatBucket& bucket : layout.buckets) {
    bucket = {.entries = bucket.entries, .offset = bucket.offset, .count = bucket.count};
  }
  return layout;
}

// Whether all passes of a step share the tensor, independently of their number of samples.
bool is_shared(const Tensor& tensor) { return tensor.role != Role::activation && tensor.role != Role::input; }

// Returns for each tensor of `rest` the corresponding tensor of `program`: a shared tensor, or a copy that is added to
// `program`.
std::vector<TensorId> matched(const Program& rest, Program& program) {
  std::map<std::string_view, TensorId> shared;
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    if (is_shared(program.tensors[id])) shared.emplace(program.tensors[id].name, static_cast<TensorId>(id));
  }
  std::vector<TensorId> in_program;
  auto next = static_cast<TensorId>(program.tensors.size());
  for (const Tensor& tensor : rest.tensors) {
    const auto found = shared.find(tensor.name);
    require(!is_shared(tensor) || found != shared.end(),
            "two programs of one network have different parameters or sums");
    in_program.push_back(is_shared(tensor) ? found->second : next++);
  }
  for (const Tensor& tensor : rest.tensors) {
    if (is_shared(tensor)) continue;
    Tensor added = tensor;
    if (added.alias_of != no_tensor) added.alias_of = in_program[static_cast<std::size_t>(added.alias_of)];
    for (TensorId& member : added.members) member = in_program[static_cast<std::size_t>(member)];
    program.tensors.push_back(std::move(added));
  }
  return in_program;
}

// The item that adds the counts of all ranks, which follows the counts of all micro-batches.
std::vector<ScheduleItem>::const_iterator end_of_counts(const Program& program) {
  return std::ranges::find_if(program.schedule, [&](const ScheduleItem& item) {
    const Segment& segment = program.segment(item.segment);
    return segment.phase == Phase::count && segment.variant == Variant::last;
  });
}

// Appends the passes of the last micro-batch of the training program `rest` to the passes of `program`. Both programs
// belong to one network and have neither been distributed nor finished. They share parameters, gradients, statistics,
// sums and scalars, which are matched by name.
Program with_rest(Program program, const Program& rest) {
  const std::vector<TensorId> tensors = matched(rest, program);
  const auto translate = [&](TensorId& id) {
    if (id != no_tensor) id = tensors[index(id)];
  };
  const ScheduleItem update = program.schedule.back();
  program.schedule.pop_back();
  for (const ScheduleItem& item : rest.schedule) {
    if (rest.segment(item.segment).phase == Phase::update || item.micro_batch + 1 < rest.micro_batches) continue;
    Segment segment = rest.segment(item.segment);
    for (Op& op : segment.ops) {
      std::for_each(op.inputs.begin(), op.inputs.end(), translate);
      std::for_each(op.outputs.begin(), op.outputs.end(), translate);
    }
    const ScheduleItem of_rest{static_cast<int>(program.segments.size()), program.micro_batches, item.slot};
    program.schedule.insert(segment.phase == Phase::count ? end_of_counts(program) : program.schedule.end(), of_rest);
    program.segments.push_back(std::move(segment));
  }
  program.schedule.push_back(update);
  program.rest_samples = rest.micro_batch_samples;
  program.rest = rest.batch;
  std::for_each(program.rest.inputs.begin(), program.rest.inputs.end(), translate);
  std::for_each(program.rest.targets.begin(), program.rest.targets.end(), translate);
  translate(program.rest.weights);
  translate(program.rest.samples);
  program.name += format(" and {}", rest.micro_batch_samples);
  return program;
}

// Builds the network of this rank: the strategies cut its graph, and then its ops are fused. In training, the spec has
// at most one player.
Network cut_network(const ProgramSpec& spec, std::int64_t micro_batch, bool training, const Parallelism& parallelism,
                    Reader& reader) {
  Network network = build_network(spec, micro_batch, training, reader, parallelism.shares);
  if (!reader.ok()) return network;
  if (training && !spec.players.empty()) network = network_of(spec.players.front(), std::move(network));
  if (parallelism.cut) {
    network.graph = parallelism.cut(std::move(network.graph));
    gather_outputs(network.graph, network.outputs, parallelism.rank, spec.predicts());
  }
  network.graph = fuse(std::move(network.graph), training);
  return network;
}

// Whether replicas exchange values within micro-batches, so that all of them must run the same number of micro-batches.
bool needs_equal_micro_batches(const Graph& graph, const Parallelism& parallelism) {
  const auto exchanges = [](const Op& op) {
    const auto* collective = op.get_if<Collective>();
    return collective != nullptr && collective->axis == MeshAxis::data;
  };
  return parallelism.equal_micro_batches || std::any_of(graph.ops.begin(), graph.ops.end(), exchanges);
}

// Removes the outputs, and all ops that no cache depends on.
void keep_caches_only(Graph& graph) {
  std::set<TensorId> read;
  std::vector<Op> kept;
  for (auto op = graph.ops.rbegin(); op != graph.ops.rend(); ++op) {
    const bool needed = std::any_of(op->outputs.begin(), op->outputs.end(), [&](TensorId id) {
      return graph.tensor(id).role == Role::cache || read.contains(id);
    });
    if (!needed) continue;
    read.insert(op->inputs.begin(), op->inputs.end());
    kept.push_back(std::move(*op));
  }
  graph.ops.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  std::fill(graph.outputs.begin(), graph.outputs.end(), no_tensor);
}

Program distributed(Program program, const Parallelism& parallelism) {
  return parallelism.distribute ? parallelism.distribute(std::move(program)) : program;
}

// Sets and checks the placements of a finished program's tensors.
Program placed(Program program, const Parallelism& parallelism) {
  check_placements(program, parallelism.rank.mesh);
  return program;
}

// Builds the training step of a run with players, in which a rank's samples are one micro-batch. A rank without samples
// contributes zeros.
Program program_of_players(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism) {
  const std::int64_t size = std::max<std::int64_t>(samples, 1);
  Network whole = build_network(spec, size, true, reader, parallelism.shares);
  if (reader.ok()) check_players(spec, whole, reader);
  if (!reader.ok()) return {};
  std::vector<PlayerPass> passes;
  for (const ProgramSpec::Player& player : spec.players) {
    for (int number = 0; number < player.steps; ++number) {
      const ProgramSpec own = spec_of(spec, player, passes.size());
      Network network = cut_network(own, size, true, parallelism, reader);
      if (!reader.ok()) return {};
      const int empty = samples == 0 && needs_equal_micro_batches(network.graph, parallelism) ? 1 : 0;
      ProgramBuilder builder(own, std::move(network), parallelism.rank);
      PlayerPass& pass =
          passes.emplace_back(PlayerPass{&player, number, losses_of(player, whole.outputs), {}, {}, {}, {}});
      pass.program = builder.training(samples, 1, empty, true);
      require_gradients(pass, whole);
      pass.statistics = builder.statistics();
      pass.teachers = builder.teachers();
      pass.spectral_norms = builder.spectral_norms();
      pass.program = distributed(std::move(pass.program), parallelism);
    }
  }
  return placed(join_passes(std::move(passes), spec, whole, parallelism.rank), parallelism);
}

}  // namespace

MicroBatches cut_micro_batches(std::int64_t samples, std::int64_t largest) {
  require(largest >= 1, "micro-batches have samples");
  if (samples == 0) return {};
  const std::int64_t size = divide_up(samples, divide_up(samples, largest));
  return {size, static_cast<int>(samples / size), samples % size};
}

MicroBatches cut_equally(std::int64_t samples, std::int64_t largest) {
  require(largest >= 1, "micro-batches have samples");
  // The largest number of micro-batches with at least half of `largest` samples each, unless the loop finds
  // micro-batches of at most `largest`.
  std::int64_t best = 1;
  for (std::int64_t count = 1; count <= samples && 2 * (samples / count) >= largest; ++count) {
    if (samples % count != 0) continue;
    best = count;
    if (samples / count <= largest) break;
  }
  return {samples / best, static_cast<int>(best)};
}

Program training_program(const ProgramSpec& spec, const MicroBatches& micro_batches, Reader& reader,
                         const Parallelism& parallelism, int max_micro_batches, const ShardedStep& shards) {
  if (!spec.players.empty()) {
    return program_of_players(spec, micro_batches.samples * micro_batches.count, reader, parallelism);
  }
  Network network = cut_network(spec, std::max<std::int64_t>(micro_batches.samples, 1), true, parallelism, reader);
  if (!reader.ok()) return {};
  const bool equal = needs_equal_micro_batches(network.graph, parallelism);
  ProgramBuilder builder(spec, std::move(network), parallelism.rank);
  const int empty = equal ? std::max(max_micro_batches - micro_batches.all(), 0) : 0;
  Program program = builder.training(micro_batches.samples * micro_batches.count, micro_batches.count, empty,
                                     parallelism.keeps_gradients);
  if (micro_batches.rest > 0) {
    Network of_rest = cut_network(spec, micro_batches.rest, true, parallelism, reader);
    if (!reader.ok()) return {};
    // A logical shard has sums of its own; any other micro-batch adds to the sums of the previous one.
    const int passes = shards.any() ? 1 : 2;
    program = with_rest(std::move(program),
                        ProgramBuilder(spec, std::move(of_rest), parallelism.rank)
                            .training(passes * micro_batches.rest, passes, 0, parallelism.keeps_gradients));
  }
  program.shards = shards;
  program = distributed(std::move(program), parallelism);
  const UpdateSpec update{spec.optimizer.as<OptimizerOptions>(),
                          spec.optimizer.location,
                          spec.clip_norm,
                          builder.statistics(),
                          builder.teachers(),
                          spec.moving_average,
                          builder.spectral_norms()};
  return placed(finish_training(std::move(program), update, parallelism.rank), parallelism);
}

Program evaluation_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism) {
  Parallelism of_layout = parallelism;
  std::ranges::fill(of_layout.shares.counts, 1);
  const Program training = training_program(spec, {1, 1}, reader, of_layout);
  if (!reader.ok()) return {};
  Network network = cut_network(spec, std::max<std::int64_t>(samples, 1), false, parallelism, reader);
  if (!reader.ok()) return {};
  const bool runs_empty = needs_equal_micro_batches(network.graph, parallelism);
  ProgramBuilder builder(spec, std::move(network), parallelism.rank);
  Program program = builder.evaluation(samples, runs_empty);
  program.flat = same_layout(training, program.tensors);
  program = distributed(std::move(program), parallelism);
  return placed(finish_evaluation(std::move(program), training), parallelism);
}

GenerationProgram generation_program(const ProgramSpec& spec, const GenerationRequest& request, Reader& reader) {
  ProgramSpec of_network = spec;
  for (ProgramSpec::Output& output : of_network.outputs) output.loss = {};
  Network network = build_network(of_network, request.samples, false, reader);
  if (!reader.ok()) return {};
  FinalActivation& final_activation = network.outputs[0].loss.folded;
  if (final_activation == FinalActivation::softmax) final_activation = FinalActivation::none;
  if (request.positions) {
    CachedGraph cached = cache_positions(std::move(network.graph), request.tokens, *request.positions);
    if (!cached.problem.empty() || !cached.not_causal.empty()) {
      return {{}, std::move(cached.problem), std::move(cached.not_causal)};
    }
    network.graph = std::move(cached.graph);
  }
  if (!request.predicts) keep_caches_only(network.graph);
  network.graph = fuse(std::move(network.graph), false);
  ProgramBuilder builder(of_network, std::move(network), {});
  return {placed(finish_prediction(builder.prediction(request.samples)), {}), "", ""};
}

Program prediction_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism) {
  ProgramSpec of_network = spec;
  for (ProgramSpec::Output& output : of_network.outputs) output.loss = {};
  Network network = cut_network(of_network, std::max<std::int64_t>(samples, 1), false, parallelism, reader);
  if (!reader.ok()) return {};
  Program program =
      distributed(ProgramBuilder(of_network, std::move(network), parallelism.rank).prediction(samples), parallelism);
  return placed(finish_prediction(std::move(program)), parallelism);
}

}  // namespace trainctl
