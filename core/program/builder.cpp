// Adds to a rank's graph the tensors and ops of losses, counts and sums. builder_segments.cpp makes segments of them.
#include "core/program/builder.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/normalization/statistics.h"
#include "core/graph/ops/training/count.h"
#include "core/graph/ops/training/update.h"
#include "core/layers/model/names.h"
#include "core/program/player_network.h"

namespace trainctl {

ProgramBuilder::ProgramBuilder(const ProgramSpec& spec, Network network, const MeshRank& rank)
    : spec_(spec), rank_(rank), stage_(rank.along(MeshAxis::pipeline)), graph_(std::move(network.graph)) {
  program_.layers = std::move(network.layers);
  program_.blocks = std::move(network.blocks);
  program_.micro_batch_samples = graph_.batch;
  program_.chance_loss = network.chance_loss;
  program_.warnings = std::move(network.warnings);
  teachers_ = std::move(network.teachers);
  program_.batch.inputs = graph_.inputs;
  program_.batch.samples = graph_.samples;
  for (const ResolvedOutput& output : network.outputs) {
    masks_ = masks_ || (output.masks() && !output.counts_itself);
  }
  if (!spec.predicts()) {
    program_.results = results_of(spec.players, network.outputs);
    add_tensors();
  }
  add_heads(std::move(network.outputs), rank);
  if (!spec.predicts()) program_.step.metrics.push_back(weight_ = add("weight", {}, DType::float32, Role::reduced));
}

// Adds the tensors that losses, sums and the host need, except the tensors of the model and of the output heads.
void ProgramBuilder::add_tensors() {
  program_.batch.weights = graph_.weights;
  std::map<TensorId, int> uses;  // number of uses of each running statistic
  for (const GraphStatistic& statistic : graph_.statistics) {
    const Tensor moving = graph_.tensor(statistic.moving);
    const std::string name = use_of(moving.name + "/sum", ++uses[statistic.moving]);
    statistic_sums_.push_back(
        statistic.batch_value == no_tensor ? no_tensor : add(name, moving.type.shape, DType::float32, Role::reduced));
    if (statistic_sums_.back() != no_tensor) {
      graph_.tensors[static_cast<std::size_t>(statistic_sums_.back())].placements = moving.placements;
    }
  }
  add_counts();
  program_.step.step = graph_.step;
  if (graph_.training) add_host_values();
}

// Adds the counts of the step and, in training, the counts of a micro-batch that ops of this stage read.
void ProgramBuilder::add_counts() {
  StepTensors& step = program_.step;
  const bool by_weight = spec_.divides_by_weight() || masks_;
  step.count = add("count", {}, DType::float32, Role::reduced);
  step.samples = by_weight ? add("samples/count", {}, DType::float32, Role::reduced) : step.count;
  if (!graph_.training) return;
  const bool penalizes = std::ranges::any_of(graph_.parameters, [](const auto& of) { return of.penalty.any(); });
  const bool moves = std::ranges::any_of(statistic_sums_, [](TensorId sum) { return sum != no_tensor; });
  const auto add_own = [this](const char* name) { return add(name, {}, DType::float32, Role::activation); };
  if (moves || (penalizes && !by_weight)) own_samples_ = add_own("samples/own_count");
  own_count_ = penalizes && by_weight ? add_own("own_count") : own_samples_;
}

void ProgramBuilder::add_heads(std::vector<ResolvedOutput> outputs, const MeshRank& rank) {
  StepTensors& step = program_.step;
  std::vector<TensorId> counts;  // of the outputs that count themselves: number of positions and sum of weights
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorId logits = graph_.outputs[i];
    const auto of_output = [i](const std::vector<TensorId>& list) { return i < list.size() ? list[i] : no_tensor; };
    const OutputTensors of{logits, of_output(graph_.masks), of_output(graph_.targets)};
    if (logits == no_tensor && spec_.predicts()) {  // the output belongs to another stage of the pipeline
      step.predictions.push_back(no_tensor);
      continue;
    }
    const bool has_loss = outputs[i].has_loss();
    if (spec_.predicts()) {
      heads_.push_back(prediction_head(std::move(outputs[i]), logits, graph_));
    } else if (!has_loss) {
      heads_.push_back(head_without_loss(std::move(outputs[i]), of, graph_));
    } else {
      heads_.push_back(loss_head(std::move(outputs[i]), of, spec_.divides_by_weight(), graph_, rank));
    }
    const OutputHead& head = heads_.back();
    if (head.values != no_tensor) graph_.outputs[i] = head.values;  // the gradient begins at the values of the loss
    if (!head.output.is_added) step.predictions.push_back(head.predictions);
    if (spec_.predicts()) continue;
    if (has_loss) step.losses.push_back(head.loss);
    if (head.count != no_tensor) counts.insert(counts.end(), {head.count, head.weight});
    if (head.output.is_added) continue;
    program_.target_encodings.push_back(head.output.target_encoding);
    program_.batch.targets.push_back(head.targets);
    step.metrics.insert(step.metrics.end(), head.metrics.begin(), head.metrics.end());
  }
  step.metrics.insert(step.metrics.begin(), counts.begin(), counts.end());
}

// Adds the scalars that the host writes before a training step or reads after it.
void ProgramBuilder::add_host_values() {
  StepTensors& step = program_.step;
  if (step.step == no_tensor) step.step = add("step", {}, DType::int64, Role::scalar);
  step.learning_rate = add("learning_rate", {}, DType::float32, Role::scalar);
  step.stop_request = add("stop_request", {}, DType::float32, Role::scalar);
  step.gradient_norm = add("gradient_norm", {}, DType::float32, Role::scalar);
  const bool scales = spec_.compute == DType::float16;
  if (scales) step.loss_scale = add("loss_scale", {}, DType::float32, Role::scalar);
  step.updates = scales || !spec_.players.empty() ? add("updates", {}, DType::int64, Role::scalar) : step.step;
}

// Returns one op that sums the batch's statistics of all layers; it has no outputs if no running statistic is updated.
Op ProgramBuilder::accumulate_statistics(bool accumulate) const {
  Op op{std::make_shared<AccumulateStatistics>(accumulate), {}, {}, "statistics", {}};
  for (std::size_t i = 0; i < graph_.statistics.size(); ++i) {
    if (statistic_sums_[i] == no_tensor) continue;
    op.inputs.push_back(graph_.statistics[i].batch_value);
    op.outputs.push_back(statistic_sums_[i]);
  }
  op.inputs.push_back(own_samples_);
  return op;
}

const OutputHead& ProgramBuilder::first_loss() const {
  return *std::ranges::find_if(heads_, [](const OutputHead& head) { return head.output.has_loss(); });
}

// The tensor whose sum is the divisor of the losses: the sample numbers, the weights, or the positions that count.
TensorId ProgramBuilder::counted() const {
  const OutputHead& head = first_loss();
  if (masks_) return spec_.divides_by_weight() ? head.weights : head.counted;
  return spec_.divides_by_weight() ? program_.batch.weights : program_.batch.samples;
}

// The ops that count the samples and weights of a micro-batch for other ops of this stage.
std::vector<Op> ProgramBuilder::count_own() const {
  const BatchTensors& batch = program_.batch;
  std::vector<Op> ops;
  const auto count = [&](TensorId counted, TensorId own) {
    ops.push_back({std::make_shared<Count>(false), {counted}, {own}, graph_.tensor(own).name, {}});
  };
  if (own_samples_ != no_tensor) count(batch.samples, own_samples_);
  if (own_count_ == own_samples_) return ops;
  if (counted() == no_tensor) {
    throw Error(ErrorKind::config,
                "regularizers in a pipeline need the number of positions that count, but only the last stage knows the "
                "padding mask or the targets: use the optimizer's weight_decay instead, or no pipeline");
  }
  count(counted(), own_count_);
  return ops;
}

// The ops for the counts of the step: the pipeline stage of the first output with a loss counts, the others set
// zeros.
std::vector<Op> ProgramBuilder::count_all(bool accumulate) const {
  const StepTensors& step = program_.step;
  const BatchTensors& batch = program_.batch;
  std::vector<Op> ops;
  const auto count = [&](TensorId counted, TensorId sum) {
    const std::string& name = graph_.tensor(sum).name;
    if (first_loss().logits != no_tensor) {
      ops.push_back({std::make_shared<Count>(accumulate), {counted}, {sum}, name, {}});
    } else if (!accumulate) {
      ops.push_back({std::make_shared<ZeroGradients>(1), {}, {sum}, name, {}});
    }
  };
  count(counted(), step.count);
  if (step.samples != step.count) count(batch.samples, step.samples);
  return ops;
}

std::vector<StatisticUpdate> ProgramBuilder::statistics() const {
  std::vector<StatisticUpdate> updates;
  for (std::size_t i = 0; i < graph_.statistics.size(); ++i) {
    const GraphStatistic& statistic = graph_.statistics[i];
    if (statistic_sums_[i] != no_tensor) updates.push_back({statistic_sums_[i], statistic.moving, statistic.momentum});
  }
  return updates;
}

std::vector<TeacherParameter> ProgramBuilder::teachers() const {
  std::vector<TeacherParameter> followers;
  std::ranges::copy_if(teachers_, std::back_inserter(followers),
                       [this](const TeacherParameter& teacher) { return trains(teacher.of); });
  return followers;
}

std::vector<GraphSpectralNorm> ProgramBuilder::spectral_norms() const {
  std::vector<GraphSpectralNorm> norms;
  std::ranges::copy_if(graph_.spectral_norms, std::back_inserter(norms),
                       [this](const GraphSpectralNorm& norm) { return trains(norm.kernel); });
  return norms;
}

bool ProgramBuilder::trains(TensorId parameter) const {
  return std::ranges::any_of(graph_.parameters,
                             [parameter](const GraphParameter& of) { return of.tensor == parameter && of.trainable; });
}

std::vector<Op> ProgramBuilder::predictions() const {
  std::vector<Op> ops;
  for (const OutputHead& head : heads_) ops.insert(ops.end(), head.prediction_ops.begin(), head.prediction_ops.end());
  return ops;
}

std::vector<TensorId> ProgramBuilder::loss_gradients() const {
  std::vector<TensorId> gradients;
  for (const OutputHead& head : heads_) gradients.push_back(head.loss_gradient);
  return gradients;
}

// The ops that turn a micro-batch's outputs into sums, and in training into the gradients of the losses, for all
// outputs except those with fused losses.
std::vector<Op> ProgramBuilder::sums(bool accumulate) const {
  std::vector<Op> ops;
  for (const OutputHead& head : heads_) ops.insert(ops.end(), head.weight_ops.begin(), head.weight_ops.end());
  for (Op& op : count_own()) ops.push_back(std::move(op));
  if (Op statistics = accumulate_statistics(accumulate); !statistics.outputs.empty())
    ops.push_back(std::move(statistics));
  for (Op& op : predictions()) ops.push_back(std::move(op));
  for (Op& op : count_all(accumulate)) ops.push_back(std::move(op));
  for (Op& op : sums_of_heads(accumulate, false)) ops.push_back(std::move(op));
  return ops;
}

// The ops for the sums of the outputs whose losses are fused, or of the other outputs. The first
// loss adds up the weights for all outputs. The sums of outputs on other pipeline stages are set to zero.
std::vector<Op> ProgramBuilder::sums_of_heads(bool accumulate, bool fused) const {
  std::vector<Op> ops;
  const SharedSums shared{program_.batch.weights, weight_, program_.step.loss_scale};
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const bool is_here = heads_[i].logits != no_tensor;
    if (!heads_[i].output.has_loss() || heads_[i].is_fused != fused || (!is_here && accumulate)) continue;
    const bool counts = &heads_[i] == &first_loss();
    std::vector<Op> own = is_here ? sum_ops(heads_[i], shared, counts, graph_.training, accumulate)
                                  : zero_sums(heads_[i], shared, counts, graph_);
    std::move(own.begin(), own.end(), std::back_inserter(ops));
  }
  return ops;
}

// The sums that are reduced after the gradients, in the order of the flat layout.
std::vector<TensorId> ProgramBuilder::reduced() const {
  std::vector<TensorId> tensors = statistic_sums_;
  std::erase(tensors, no_tensor);
  const StepTensors& step = program_.step;
  tensors.insert(tensors.end(), step.losses.begin(), step.losses.end());
  tensors.insert(tensors.end(), step.metrics.begin(), step.metrics.end());
  tensors.push_back(step.count);
  if (step.samples != step.count) tensors.push_back(step.samples);
  return tensors;
}

}  // namespace trainctl
