// Flat layout, agreement, norm and update.
#include "core/program/finish.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/optimizers.h"
#include "core/graph/ops/statistics.h"
#include "core/graph/ops/update.h"
#include "core/program/flat_layout.h"
#include "core/program/placements.h"

namespace trainctl {
namespace {

bool is_without_samples(const Program& program) { return program.micro_batch_samples == 0; }

// An all-reduce of a tensor over an axis, in place.
Op reduce(MeshAxis axis, TensorId tensor, std::string name) {
  return {std::make_shared<AllReduce>(axis), {tensor}, {tensor}, std::move(name), {}};
}

// Makes the sums the last members of the bucket that the update reduces over the data axis. Where it reduces no bucket,
// the sums become a bucket of their own, whose reduction is appended to `reductions`. The gradient's squares are those
// of the reduced gradient and stay out.
void reduce_sums(Program& program, TensorId squares, std::vector<Op>& reductions) {
  const auto in_update = [](const Op& op) {
    const auto* all_reduce = op.get_if<AllReduce>();
    return all_reduce != nullptr && all_reduce->axis == MeshAxis::data;
  };
  auto last = std::find_if(reductions.rbegin(), reductions.rend(), in_update);
  TensorId bucket = no_tensor;
  if (last != reductions.rend()) {
    bucket = last->inputs[0];
  } else {
    bucket = program.add("sums", {}, DType::float32, Role::reduced);
    reductions.push_back(reduce(MeshAxis::data, bucket, "sums"));
  }
  std::vector<TensorId>& members = program.tensors[static_cast<std::size_t>(bucket)].members;
  for (const FlatPlace& place : program.flat.reduced) {
    if (place.tensor != squares) members.push_back(place.tensor);
  }
}

// Sets the shape of each bucket: from its first member to the first member of the next bucket, gaps included; of the
// last one, to its end.
void size_buckets(Program& program) {
  std::vector<std::pair<std::int64_t, TensorId>> buckets;
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    const std::vector<TensorId>& members = program.tensors[id].members;
    if (!members.empty())
      buckets.emplace_back(program.flat.gradient_offset(members.front()), static_cast<TensorId>(id));
  }
  std::sort(buckets.begin(), buckets.end());
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const TensorId last = program.tensor(buckets[b].second).members.back();
    const std::int64_t end = b + 1 < buckets.size()
                                 ? buckets[b + 1].first
                                 : program.flat.gradient_offset(last) + program.tensor(last).type.shape.count();
    program.tensors[static_cast<std::size_t>(buckets[b].second)].type = {{end - buckets[b].first}, DType::float32};
  }
}

// The ranges of the gradient whose squares this rank adds up. Of gradients that all ranks along the tensor axis have,
// the first of them does.
std::vector<InputRange> counted_ranges(const Program& program, const MeshRank& rank) {
  std::vector<InputRange> ranges;
  const auto counts = [&](const FlatEntry& entry) {
    return rank.along(MeshAxis::tensor) == 0 || states_split(program.tensor(entry.parameter), MeshAxis::tensor);
  };
  for (const FlatEntry& entry : program.flat.parameters) {
    if (entry.gradient == no_tensor || !counts(entry)) continue;
    const std::int64_t end = round_up(entry.offset + entry.count, flat_alignment);  // zeros fill the gap
    const bool joins = !ranges.empty() && ranges.back().offset + ranges.back().count == entry.offset;
    if (!joins) ranges.push_back({0, entry.offset, 0});
    ranges.back().count = end - ranges.back().offset;
  }
  return ranges;
}

// The norm of the gradient as the root of a sum of squares that is reduced along the axes.
void norm_of_parts(const Program& program, TensorId squares, TensorId divisor, const MeshRank& rank,
                   const std::vector<MeshAxis>& axes, std::vector<Op>& ops) {
  const StepTensors& step = program.step;
  auto sum = std::make_shared<SumOfSquares>(counted_ranges(program, rank), axes);
  ops.push_back({std::move(sum), {step.gradients}, {squares}, "gradient_squares", {}});
  for (MeshAxis axis : axes) ops.push_back(reduce(axis, squares, "gradient_squares"));
  ops.push_back({std::make_shared<NormOfSquares>(), {squares, divisor}, {step.gradient_norm}, "gradient_norm", {}});
}

// The axes along which ranks hold other parts of the model.
std::vector<MeshAxis> model_axes(const MeshRank& rank) {
  std::vector<MeshAxis> axes;
  for (MeshAxis axis : {MeshAxis::pipeline, MeshAxis::tensor}) {
    if (rank.size(axis) > 1) axes.push_back(axis);
  }
  return axes;
}

Op update_statistics(const Program& program, const std::vector<StatisticUpdate>& statistics) {
  std::vector<float> momenta;
  Op op{nullptr, {}, {}, "statistics", {}};
  for (const StatisticUpdate& statistic : statistics) {
    momenta.push_back(statistic.momentum);
    op.inputs.push_back(statistic.sum);
    op.outputs.push_back(statistic.moving);
  }
  op.def = std::make_shared<UpdateStatistics>(std::move(momenta));
  op.inputs.insert(op.inputs.end(), {program.step.count, program.step.agree});
  return op;
}

// The ops of the update in the order in which they run: agreement, reductions, norm, optimizer, statistics.
// `squares`: the tensor for the sum of squares where `axes` has any.
std::vector<Op> update_ops(Program& program, const UpdateSpec& update, std::vector<Op> reductions, TensorId squares,
                           const MeshRank& rank, const std::vector<MeshAxis>& axes) {
  const StepTensors& step = program.step;
  std::vector<Op> ops;
  std::vector<TensorId> judged = step.losses;
  judged.push_back(step.stop_request);
  ops.push_back({std::make_shared<Agree>(), std::move(judged), {step.agree}, "agree", {}});
  std::move(reductions.begin(), reductions.end(), std::back_inserter(ops));
  TensorId divisor = step.count;  // divides the summed gradient: the count, times the loss scale
  if (step.loss_scale != no_tensor) {
    divisor = program.add("divisor", {}, DType::float32, Role::scalar);
    ops.push_back({std::make_shared<Scale>(), {step.count, step.loss_scale}, {divisor}, "divisor", {}});
  }
  if (axes.empty()) {
    ops.push_back({std::make_shared<GradientNorm>(program.flat.trainable_count),
                   {step.gradients, divisor},
                   {step.gradient_norm},
                   "gradient_norm",
                   {}});
  } else {
    norm_of_parts(program, squares, divisor, rank, axes, ops);
  }
  std::vector<TensorId> updated{step.parameters};
  updated.insert(updated.end(), step.states.begin(), step.states.end());
  const OptimizerOptions& optimizer = update.optimizer;
  ops.push_back({optimizer.update(update_ranges(program.flat, optimizer.by_parameter()), update.clip_norm),
                 {step.gradients, step.learning_rate, step.step, divisor, step.agree, step.gradient_norm},
                 std::move(updated),
                 "update",
                 update.place});
  if (!update.statistics.empty()) ops.push_back(update_statistics(program, update.statistics));
  return ops;
}

// An optimizer that looks at each parameter as a whole cannot update parts of them.
void require_whole_parameters(const Program& program, const UpdateSpec& update) {
  if (!update.optimizer.by_parameter()) return;
  for (const FlatEntry& entry : program.flat.parameters) {
    const Tensor& tensor = program.tensor(entry.parameter);
    if (entry.gradient == no_tensor || !tensor.part) continue;
    throw Error(ErrorKind::config, update.place,
                format("the optimizer takes norms of whole parameters, and ranks hold parts of '{}'", tensor.name),
                "use another optimizer, such as adamw, or strategy.data alone");
  }
}

}  // namespace

Program finish_training(Program program, const UpdateSpec& update, const MeshRank& rank) {
  require_whole_parameters(program, update);
  StepTensors& step = program.step;
  step.agree = program.add("agree", {agree_flags}, DType::float32, Role::reduced);
  program.flat.reduced.push_back({step.agree, 0});
  const std::vector<MeshAxis> axes = model_axes(rank);
  TensorId squares = no_tensor;
  if (!axes.empty()) {
    squares = program.add("gradient_squares", {}, DType::float32, Role::reduced);
    program.flat.reduced.push_back({squares, 0});
  }
  assign_offsets(program.flat, program.tensors);
  const FlatLayout& flat = program.flat;
  step.parameters = program.add("parameters", {flat.parameter_count}, DType::float32, Role::parameter);
  step.gradients = program.add("gradients", {flat.gradient_count}, DType::float32, Role::gradient);
  for (const std::string& state : flat.states) {
    step.states.push_back(program.add(state, {flat.trainable_count}, DType::float32, Role::state));
  }
  if (is_without_samples(program)) {
    std::vector<Op>& backward = program.segments[static_cast<std::size_t>(program.find(Phase::backward))].ops;
    backward.insert(backward.begin(),
                    {std::make_shared<ZeroGradients>(flat.gradient_count), {}, {step.gradients}, "no samples", {}});
  }
  Segment& segment = program.segments[static_cast<std::size_t>(program.find(Phase::update))];
  std::vector<Op> reductions = std::move(segment.ops);
  if (rank.size(MeshAxis::data) > 1) reduce_sums(program, squares, reductions);
  // Ranks along the other axes have equal sums, but only some of them may have a stop request or a loss that is not
  // finite: the agreement's flags are reduced over these axes too.
  for (MeshAxis axis : axes) reductions.push_back(reduce(axis, step.agree, "agree"));
  size_buckets(program);
  segment.ops = update_ops(program, update, std::move(reductions), squares, rank, axes);
  return program;
}

Program finish_evaluation(Program program, const Program& training) {
  StepTensors& step = program.step;
  step.parameters = program.add("parameters", {training.flat.parameter_count}, DType::float32, Role::parameter);
  const std::int64_t sums = training.flat.gradient_count - training.flat.trainable_count;
  step.sums = program.add("sums", {sums}, DType::float32, Role::reduced);
  program.flat = same_layout(training, program.tensors);
  if (is_without_samples(program)) {
    std::vector<Op>& forward = program.segments[static_cast<std::size_t>(program.find(Phase::forward))].ops;
    forward.push_back({std::make_shared<ZeroGradients>(sums), {}, {step.sums}, "no samples", {}});
  }
  return program;
}

Program finish_prediction(Program program) {
  assign_offsets(program.flat, program.tensors);
  program.step.parameters = program.add("parameters", {program.flat.parameter_count}, DType::float32, Role::parameter);
  return program;
}

}  // namespace trainctl
