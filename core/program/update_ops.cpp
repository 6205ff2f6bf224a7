// Builds the ops of the update.
#include "core/program/update_ops.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/normalization/statistics.h"
#include "core/graph/ops/optimizers/optimizers.h"
#include "core/graph/ops/training/gradients.h"
#include "core/graph/ops/training/moving_average.h"
#include "core/graph/ops/training/update.h"
#include "core/optim/optimizer.h"

namespace trainctl {
namespace {

// Appends the updates of running statistics: one op or, if layers have several uses, one op for each use.
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
    op.inputs.insert(op.inputs.end(), {program.step.samples, program.step.agree, program.step.gradient_norm});
    ops.push_back(std::move(op));
    statistics = std::move(later);
  }
}

// The gradients that this rank holds of a bucket's parameters with at least `min_rank` dimensions.
std::vector<GradientMatrix> matrices_of(const Program& program, const FlatBucket& bucket, std::int64_t min_rank) {
  const ParameterLayout& flat = program.flat;
  std::vector<GradientMatrix> matrices;
  for (const LocalExtent& extent : flat.local_extents()) {
    const Shape& shape = program.tensor(extent.entry->parameter).type.shape;
    if (&flat.buckets[extent.bucket] != &bucket || shape.rank() < min_rank) continue;
    const std::int64_t columns = shape.rank() < 2 || extent.count < extent.entry->count ? extent.count : shape.back();
    matrices.push_back({extent.offset, extent.count / columns, columns});
  }
  return matrices;
}

// The op that clips the gradients of this rank's shard of a bucket, each parameter by itself or each element.
Op clip_op(const Program& program, const OptimizerOptions& optimizer, TensorId divisor, const FlatBucket& bucket) {
  auto clip = std::make_shared<ClipGradients>(matrices_of(program, bucket, 0),
                                              static_cast<float>(optimizer.clipnorm.value_or(0)),
                                              static_cast<float>(optimizer.clipvalue.value_or(0)));
  return {std::move(clip), {bucket.gradient, divisor}, {bucket.gradient}, "clip_gradients", {}};
}

// The optimizer's op on this rank's shard of a bucket.
Op update_op(const Program& program, const UpdateSpec& update, TensorId divisor, const FlatBucket& bucket) {
  const StepTensors& step = program.step;
  std::vector<TensorId> changed{bucket.parameter};
  changed.insert(changed.end(), bucket.states.begin(), bucket.states.end());
  const double clip_norm = update.optimizer.global_clipnorm.value_or(update.clip_norm);
  return {update.optimizer.update(program.flat.update_ranges(bucket, update.optimizer.by_parameter()), clip_norm),
          {bucket.gradient, step.learning_rate, step.updates, divisor, step.agree, step.gradient_norm},
          std::move(changed),
          "update",
          update.location};
}

// The op that updates the moving averages of `count` parameter elements.
Op average_op(const Program& program, const UpdateSpec& update, TensorId parameters, std::int64_t count,
              TensorId averages) {
  const StepTensors& step = program.step;
  return {std::make_shared<MovingAverage>(*update.moving_average, count),
          {parameters, step.updates, step.agree, step.gradient_norm},
          {averages},
          "moving_average",
          {}};
}

// The op that moves a parameter of a teacher.
Op teacher_op(const Program& program, const TeacherParameter& teacher) {
  const StepTensors& step = program.step;
  const Tensor& parameter = program.tensor(teacher.parameter);
  return {std::make_shared<MovingAverage>(teacher.momentum, parameter.type.shape.count(), true),
          {teacher.of, step.updates, step.agree, step.gradient_norm},
          {teacher.parameter},
          parameter.name,
          parameter.location};
}

}  // namespace

std::vector<Op> update_ops(Program& program, const UpdateSpec& update, std::vector<Op> reductions, TensorId squares) {
  const StepTensors& step = program.step;
  std::vector<Op> ops;
  std::vector<TensorId> judged = step.losses;
  judged.push_back(step.stop_request);
  ops.push_back({std::make_shared<Agree>(), std::move(judged), {step.agree}, "agree", {}});
  std::move(reductions.begin(), reductions.end(), std::back_inserter(ops));
  TensorId divisor = step.count;  // divisor of the summed gradient: the count times the loss scale
  if (step.loss_scale != no_tensor) {
    divisor = program.add("divisor", {}, DType::float32, Role::scalar);
    ops.push_back({std::make_shared<Scale>(), {step.count, step.loss_scale}, {divisor}, "divisor", {}});
  }
  const FlatBucket* const own = program.flat.own_bucket();
  const TensorId gradients = own != nullptr ? own->gradient : step.gradients;
  std::shared_ptr<const OpDef> norm = std::make_shared<NormOfSquares>();
  if (squares == no_tensor) {
    norm = std::make_shared<GradientNorm>(own != nullptr ? own->count : program.flat.trainable_count);
  }
  ops.push_back({std::move(norm),
                 {squares == no_tensor ? gradients : squares, divisor},
                 {step.gradient_norm},
                 "gradient_norm",
                 {}});
  const ParameterLayout& flat = program.flat;
  for (const FlatBucket& bucket : flat.buckets) {
    if (own != nullptr && &bucket != own) continue;
    if (update.optimizer.clipnorm || update.optimizer.clipvalue) {
      ops.push_back(clip_op(program, update.optimizer, divisor, bucket));
    }
    ops.push_back(update_op(program, update, divisor, bucket));
    if (bucket.average != no_tensor) {
      ops.push_back(average_op(program, update, bucket.parameter, flat.shard_count(bucket), bucket.average));
    }
    ops.insert(ops.end(), bucket.after_update.begin(), bucket.after_update.end());
  }
  if (flat.averages && own == nullptr && !flat.shares(Quantity::parameters) && flat.trainable_count > 0) {
    ops.push_back(average_op(program, update, step.parameters, flat.trainable_count, step.averages));
  }
  for (const TeacherParameter& teacher : update.teachers) ops.push_back(teacher_op(program, teacher));
  update_statistics(program, update.statistics, ops);
  return ops;
}

void centralize_gradients(const Program& program, std::vector<Op>& ops) {
  const FlatBucket* const own = program.flat.own_bucket();
  for (const FlatBucket& bucket : program.flat.buckets) {
    if (own != nullptr && &bucket != own) continue;
    std::vector<GradientMatrix> matrices = matrices_of(program, bucket, 2);
    if (matrices.empty()) continue;
    auto centralize = std::make_shared<CentralizeGradients>(std::move(matrices));
    ops.push_back({std::move(centralize), {bucket.gradient}, {bucket.gradient}, "centralize_gradients", {}});
  }
}

void require_whole_parameters(const Program& program, const UpdateSpec& update) {
  const OptimizerOptions& optimizer = update.optimizer;
  const char* needed = optimizer.by_parameter()            ? "the optimizer needs norms"
                       : optimizer.clipnorm                ? "clipnorm needs norms"
                       : optimizer.gradient_centralization ? "gradient_centralization needs means"
                                                           : nullptr;
  if (needed == nullptr) return;
  for (const FlatEntry& entry : program.flat.parameters) {
    const Tensor& tensor = program.tensor(entry.parameter);
    if (entry.gradient == no_tensor || (!tensor.shard && !program.flat.shares(Quantity::states))) continue;
    throw Error(ErrorKind::config, update.location,
                format("{} of whole parameters, but ranks hold shards of '{}'", needed, tensor.name),
                optimizer.by_parameter() ? "use another optimizer, such as adamw, or strategy.data alone"
                : optimizer.clipnorm     ? "use train.clip_norm instead, or strategy.data alone without shards"
                                         : "leave it out, or use strategy.data alone without shards");
  }
}

}  // namespace trainctl
