// Builds the segments and the schedule of one rank's program from its graph.
#pragma once

#include <utility>
#include <vector>

#include "core/program/finish.h"
#include "core/program/network.h"
#include "core/program/output_head.h"
#include "core/program/position_counts.h"
#include "core/program/program.h"

namespace trainctl {

// Builds the segments and the schedule of one rank's program. The functions of finish.h then add the flat layout and
// the update.
class ProgramBuilder {
 public:
  // The graph of `network` must be cut and fused.
  ProgramBuilder(const ProgramSpec& spec, Network network, const MeshRank& rank);

  // Builds a training program for `samples` samples in `micro_batches` equal micro-batches, followed by `empty`
  // micro-batches that have no samples and compute on zeros. Without `keeps_gradients`, the backward pass of each
  // micro-batch overwrites the gradients of the previous one.
  Program training(std::int64_t samples, int micro_batches, int empty, bool keeps_gradients);
  // Without samples, the program has no ops or, if `runs_empty`, computes on zeros.
  Program evaluation(std::int64_t samples, bool runs_empty);
  Program prediction(std::int64_t samples);
  // The running statistics that the update changes. Valid after training().
  std::vector<StatisticUpdate> statistics() const;
  // The parameters of teachers that follow parameters of the program that train. Valid after training().
  std::vector<TeacherParameter> teachers() const;
  // The spectral norms of kernels that train. Valid after training().
  std::vector<GraphSpectralNorm> spectral_norms() const;

 private:
  void add_tensors();
  void add_counts();
  void add_heads(std::vector<ResolvedOutput> outputs, const MeshRank& rank);
  void add_host_values();
  PositionCountOps position_counts(bool has_samples);
  std::pair<std::vector<Op>, std::vector<Op>> forward_ops() const;
  void begin_with_counts(PositionCountOps ops, int micro_batches);
  const OutputHead& first_loss() const;
  TensorId counted() const;
  Op accumulate_statistics(bool accumulate) const;
  std::vector<Op> count_own() const;
  std::vector<Op> count_all(bool accumulate) const;
  std::vector<Op> sums(bool accumulate) const;
  std::vector<Op> sums_of_heads(bool accumulate, bool fused) const;
  std::vector<Op> predictions() const;
  std::vector<TensorId> loss_gradients() const;
  std::vector<TensorId> reduced() const;
  void penalize(Backward& backward);
  std::vector<Op> zero_inputs() const;
  void leave_batch();
  void leave_unread_batch();
  bool trains(TensorId parameter) const;
  Program take();

  TensorId add(std::string name, Shape shape, DType dtype, Role role) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.type = {std::move(shape), dtype};
    tensor.role = role;
    return graph_.add_tensor(std::move(tensor));
  }

  const ProgramSpec& spec_;
  const MeshRank rank_;
  const int stage_;  // stage of the pipeline
  Graph graph_;
  Program program_;
  std::vector<OutputHead> heads_;  // one head for each output
  std::vector<TeacherParameter> teachers_;
  std::vector<TensorId> statistic_sums_;  // for each of graph_.statistics; no_tensor if the layer is frozen
  TensorId weight_ = no_tensor;           // the sum of the weights
  bool masks_ = false;  // whether losses and metrics leave out positions, the same ones for all outputs
  // In training, the divisor of this micro-batch's loss (a sum of weights or a number of samples or positions), and its
  // number of samples; the same tensor if both are the number of samples. no_tensor: not needed.
  TensorId own_count_ = no_tensor, own_samples_ = no_tensor;
};

}  // namespace trainctl
