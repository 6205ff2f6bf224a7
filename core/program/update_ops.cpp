// Ops of the update.
#include "core/program/update_ops.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/normalization/statistics.h"
#include "core/graph/ops/optimizers/optimizers.h"
#include "core/graph/ops/training/moving_average.h"
#include "core/graph/ops/training/update.h"
#include "core/program/flat_layout.h"

namespace trainctl {
namespace {

// Appends the updates of running statistics: one op, or as many as a layer has uses, which move its statistics in turn.
void update_statistics(const Program& program, std::vector<StatisticUpdate> statistics, std::vector<Op>& ops) {
  while (!statistics.empty()) {
    std::vector<float> momenta;
    std::vector<StatisticUpdate> later;
    Op op{nullptr, {}, {}, "statistics", {}};
    for (const StatisticUpdate& statistic : statistics) {
      if (std::find(op.outputs.begin(), op.outputs.end(), statistic.moving) != op.outputs.end()) {
        later.push_back(statistic);
        continue;
      }
      momenta.push_back(statistic.momentum);
      op.inputs.push_back(statistic.sum);
      op.outputs.push_back(statistic.moving);
    }
    op.def = std::make_shared<UpdateStatistics>(std::move(momenta));
    op.inputs.insert(op.inputs.end(), {program.step.samples, program.step.agree});
    ops.push_back(std::move(op));
    statistics = std::move(later);
  }
}

// What an optimizer's op changes, and the ranges of it.
struct UpdateTarget {
  TensorId gradient = no_tensor;
  TensorId parameter = no_tensor;
  std::vector<TensorId> states;
  std::vector<UpdateRange> ranges;
};

Op update_op(const Program& program, const UpdateSpec& update, TensorId divisor, const UpdateTarget& target) {
  const StepTensors& step = program.step;
  std::vector<TensorId> changed{target.parameter};
  changed.insert(changed.end(), target.states.begin(), target.states.end());
  return {update.optimizer.update(target.ranges, update.clip_norm),
          {target.gradient, step.learning_rate, step.updates, divisor, step.agree, step.gradient_norm},
          std::move(changed),
          "update",
          update.place};
}

// Moves the averages of `count` parameters.
Op average_op(const Program& program, const UpdateSpec& update, TensorId parameters, std::int64_t count,
              TensorId averages) {
  const StepTensors& step = program.step;
  return {std::make_shared<MovingAverage>(*update.moving_average, count),
          {parameters, step.updates, step.agree, step.gradient_norm},
          {averages},
          "moving_average",
          {}};
}

// Adds the tensors of this rank's parts of a bucket's states, and of the bucket's parameters.
void add_parts(Program& program, std::size_t number, std::size_t first_entry) {
  FlatLayout& flat = program.flat;
  FlatBucket& bucket = flat.sharding.buckets[number];
  const std::string name = program.tensor(bucket.gradient).name;
  const std::int64_t part = bucket.count / flat.sharding.shards;
  for (const std::string& state : flat.states) {
    bucket.states.push_back(program.add(name + "/" + state, {part}, DType::float32, Role::state));
    program.tensors.back().placements = {split_along(0), replicated, replicated};
  }
  if (flat.sharding.parameters && flat.averages) {
    bucket.average = program.add(name + "/averages", {part}, DType::float32, Role::state);
    program.tensors.back().placements = {split_along(0), replicated, replicated};
  }
  if (flat.sharding.parameters) return;
  bucket.parameters = program.add(name + "/gathered", {bucket.count}, DType::float32, Role::parameter);
  std::vector<TensorId>& members = program.tensors[static_cast<std::size_t>(bucket.parameters)].members;
  for (int i = 0; i < bucket.entries; ++i) {
    members.push_back(flat.parameters[first_entry + static_cast<std::size_t>(i)].parameter);
  }
}

// The update of each bucket's part, behind which the ranks gather the bucket's parameters, if all ranks hold them.
void update_parts(Program& program, const UpdateSpec& update, TensorId divisor, std::vector<Op>& ops) {
  const std::vector<UpdateRange> ranges = update_ranges(program.flat);
  const int shards = program.flat.sharding.shards;
  const bool several = program.flat.sharding.buckets.size() > 1;
  std::vector<Op> waits;
  std::size_t entry = 0;
  for (std::size_t b = 0; b < program.flat.sharding.buckets.size(); ++b) {
    add_parts(program, b, entry);
    const FlatBucket& bucket = program.flat.sharding.buckets[b];
    const std::int64_t first = program.flat.part_offset(bucket);
    ops.push_back(update_op(program, update, divisor,
                            {bucket.gradient, bucket.parameter, bucket.states,
                             ranges_within(ranges, first, first + bucket.count / shards)}));
    entry += static_cast<std::size_t>(bucket.entries);
    if (bucket.average != no_tensor) {
      ops.push_back(average_op(program, update, bucket.parameter, bucket.count / shards, bucket.average));
    }
    if (bucket.parameters == no_tensor) continue;
    const std::string name = program.tensor(bucket.parameters).name;
    ops.push_back({std::make_shared<AllGather>(MeshAxis::data, shards, several),
                   {bucket.parameter},
                   {bucket.parameters},
                   name,
                   {}});
    if (several) waits.push_back({std::make_shared<Wait>(), {bucket.parameters}, {bucket.parameters}, name, {}});
  }
  std::move(waits.begin(), waits.end(), std::back_inserter(ops));
}

}  // namespace

std::vector<Op> update_ops(Program& program, const UpdateSpec& update, std::vector<Op> reductions, TensorId squares) {
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
  std::shared_ptr<const OpDef> norm = std::make_shared<NormOfSquares>();
  if (squares == no_tensor) norm = std::make_shared<GradientNorm>(program.flat.trainable_count);
  ops.push_back({std::move(norm),
                 {squares == no_tensor ? step.gradients : squares, divisor},
                 {step.gradient_norm},
                 "gradient_norm",
                 {}});
  if (program.flat.sharding.shares()) {
    update_parts(program, update, divisor, ops);
  } else {
    ops.push_back(update_op(
        program, update, divisor,
        {step.gradients, step.parameters, step.states, update_ranges(program.flat, update.optimizer.by_parameter())}));
  }
  const FlatLayout& flat = program.flat;
  if (flat.averages && !flat.sharding.parameters && flat.trainable_count > 0) {
    ops.push_back(average_op(program, update, step.parameters, flat.trainable_count, step.averages));
  }
  update_statistics(program, update.statistics, ops);
  return ops;
}

void require_whole_parameters(const Program& program, const UpdateSpec& update) {
  if (!update.optimizer.by_parameter()) return;
  for (const FlatEntry& entry : program.flat.parameters) {
    const Tensor& tensor = program.tensor(entry.parameter);
    if (entry.gradient == no_tensor || (!tensor.part && !program.flat.sharding.shares())) continue;
    throw Error(ErrorKind::config, update.place,
                format("the optimizer takes norms of whole parameters, and ranks hold parts of '{}'", tensor.name),
                "use another optimizer, such as adamw, or strategy.data alone");
  }
}

}  // namespace trainctl
