// The update segment of a training program: agreement, norm, optimizer, running statistics.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/graph.h"
#include "core/program/program.h"

namespace trainctl {

struct OptimizerOptions;

// A running statistic and its update: moving = momentum * moving + (1 - momentum) * sum / count.
struct StatisticUpdate {
  TensorId sum = no_tensor;
  TensorId moving = no_tensor;
  float momentum = 0;
};

// A parameter of a teacher, and the parameter whose moving average it is.
struct TeacherParameter {
  TensorId parameter = no_tensor;
  TensorId of = no_tensor;
  float momentum = 0;
};

struct UpdateSpec {
  const OptimizerOptions& optimizer;
  SourceLocation location;  // the line of the optimizer in the config
  double clip_norm = 0;     // largest norm of the gradient; 0: not clipped
  std::vector<StatisticUpdate> statistics;
  std::vector<TeacherParameter> teachers;         // those that follow parameters that this update changes
  std::optional<float> moving_average;            // momentum of the moving average of the parameters
  std::vector<GraphSpectralNorm> spectral_norms;  // of the kernels that this update changes
};

// The ops of the update in the order in which they run: agreement, `reductions`, norm, optimizer, moving averages,
// statistics.
// `squares`: the reduced sum of the gradient's squares; no_tensor if this rank computes the norm of the whole gradient.
// The optimizer updates this rank's shard of each bucket, bucket by bucket; the bucket's own ops follow its update.
std::vector<Op> update_ops(Program& program, const UpdateSpec& update, std::vector<Op> reductions, TensorId squares);

// Appends the op that centralizes the reduced gradients of all parameters with several dimensions, if there are any.
// Ranks hold whole parameters.
void centralize_gradients(const Program& program, std::vector<Op>& ops);

// Throws Error{config} with the optimizer's line if the optimizer needs norms or means of whole parameters, but ranks
// hold only shards of some parameters.
void require_whole_parameters(const Program& program, const UpdateSpec& update);

}  // namespace trainctl
