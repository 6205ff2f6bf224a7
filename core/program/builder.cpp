// Builds the segments and the schedule of one rank's program.
#include "core/program/builder.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/normalization/statistics.h"
#include "core/graph/ops/training/count.h"
#include "core/graph/ops/training/penalize.h"
#include "core/graph/ops/training/update.h"
#include "core/graph/passes/fuse.h"
#include "core/layers/model/names.h"
#include "core/optim/optimizer.h"
#include "core/program/fused_loss.h"
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

// The ops that count the positions of outputs that count themselves; none if there are no such outputs. A rank without
// samples counts nothing.
PositionCountOps ProgramBuilder::position_counts(bool has_samples) {
  std::vector<CountedOutput> outputs;
  std::vector<Op> makers = graph_.ops;
  for (const OutputHead& head : heads_) {
    if (!head.output.counts_itself) continue;
    outputs.push_back({head.output.name, head.counted, head.factor, head.output.loss.location});
    makers.insert(makers.end(), head.weight_ops.begin(), head.weight_ops.end());
  }
  if (outputs.empty()) return {};
  const StepCount of_step{counted(), first_loss().logits != no_tensor, program_.step.loss_scale};
  return count_positions(graph_, outputs, of_step, makers, rank_, has_samples);
}

// Adds the segments that count, and schedules them for `micro_batches` micro-batches.
void ProgramBuilder::begin_with_counts(PositionCountOps ops, int micro_batches) {
  if (ops.last.empty()) return;
  const auto add = [this](Variant variant, std::vector<Op> of_segment) {
    program_.segments.push_back({Phase::count, variant, std::move(of_segment)});
    return static_cast<int>(program_.segments.size()) - 1;
  };
  if (!ops.zero.empty()) program_.schedule.push_back({add(Variant::empty, std::move(ops.zero)), -1, 0});
  if (!ops.first.empty()) {
    const int first = add(Variant::first, std::move(ops.first));
    const int later = micro_batches > 1 ? add(Variant::accumulate, std::move(ops.later)) : first;
    for (int i = 0; i < micro_batches; ++i) program_.schedule.push_back({i == 0 ? first : later, i, 0});
  }
  program_.schedule.push_back({add(Variant::last, std::move(ops.last)), -1, 0});
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

// Adds the gradients of penalties, each after the last op that writes the parameter's gradient. If several stages of a
// pipeline hold a parameter, the first of these stages adds its penalty.
void ProgramBuilder::penalize(Backward& backward) {
  for (const GraphParameter& parameter : graph_.parameters) {
    const auto gradient = backward.parameter_gradients.find(parameter.tensor);
    const bool is_for_other_stage = !parameter.stages.empty() && parameter.stages.front() != stage_;
    if (!parameter.penalty.any() || gradient == backward.parameter_gradients.end() || is_for_other_stage) continue;
    program_.penalties[graph_.tensor(parameter.tensor).name] = parameter.penalty;
    const TensorId written = gradient->second;
    const auto last = std::find_if(backward.ops.rbegin(), backward.ops.rend(), [&](const Op& op) {
      return std::find(op.outputs.begin(), op.outputs.end(), written) != op.outputs.end();
    });
    require(last != backward.ops.rend(), "no op writes the gradient of a parameter that trains");
    Op op{std::make_shared<Penalize>(parameter.penalty),
          {parameter.tensor, own_count_},
          {written},
          graph_.tensor(parameter.tensor).name,
          graph_.tensor(parameter.tensor).location};
    if (program_.step.loss_scale != no_tensor) op.inputs.push_back(program_.step.loss_scale);
    backward.ops.insert(last.base(), std::move(op));
  }
}

// The ops of the forward pass of a training program, and those that compute the values of losses that are expressions.
// The latter run in the backward pass, next to their gradients, which read the same tensors
// (core/compile/row_groups.h). Ops of losses whose gradients compute their results are left out.
std::pair<std::vector<Op>, std::vector<Op>> ProgramBuilder::forward_ops() const {
  std::pair<std::vector<Op>, std::vector<Op>> ops;
  for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
    const bool is_of_loss = std::ranges::any_of(
        heads_, [i](const OutputHead& head) { return i >= head.first_value_op && i < head.end_of_value_ops; });
    (is_of_loss ? ops.second : ops.first).push_back(graph_.ops[i]);
  }
  ops.first = without_fused_losses(ops.first);
  return ops;
}

Program ProgramBuilder::training(std::int64_t samples, int micro_batches, int empty, bool keeps_gradients) {
  const auto& optimizer = spec_.optimizer.as<OptimizerOptions>();
  begin_with_counts(position_counts(samples > 0), samples > 0 ? micro_batches : 0);
  // Both variants of the backward pass use the same tensor numbers, since differentiation depends only on the graph.
  Graph again = graph_;
  Backward first = fuse(differentiate(graph_, loss_gradients(), false));
  Backward later = fuse(differentiate(again, loss_gradients(), keeps_gradients));
  require(graph_.tensors.size() == again.tensors.size(), "two differentiations of a graph made different tensors");
  penalize(first);
  penalize(later);
  const auto decays = [&](const GraphParameter& parameter) {
    return optimizer.decays(graph_.tensor(parameter.tensor).name, parameter.decay);
  };
  program_.flat = order_parameters(graph_, first, reduced(), decays);
  program_.flat.keep_states(state_names(optimizer.rule()), is_factored(optimizer.rule()), graph_.tensors);
  for (FlatEntry& entry : program_.flat.parameters) {
    const Tensor& parameter = graph_.tensor(entry.parameter);
    if (optimizer.orthogonalizes(parameter.name, parameter.type.shape)) entry.matrix = parameter.type.shape;
  }
  program_.flat.averages = spec_.moving_average.has_value();
  program_.micro_batches = micro_batches;
  program_.name =
      micro_batches == 1 ? format("train {}", samples) : format("train {} in {} micro-batches", samples, micro_batches);
  const auto [forward, of_losses] = forward_ops();
  const auto backward = [&](bool accumulate, Backward& gradients) {
    std::vector<Op> ops = of_losses;
    std::ranges::move(sums(accumulate), std::back_inserter(ops));
    std::move(gradients.ops.begin(), gradients.ops.end(), std::back_inserter(ops));
    for (Op& op : sums_of_heads(accumulate, true)) ops.push_back(std::move(op));
    return ops;
  };
  const int with_samples = samples == 0 ? 0 : micro_batches, all = with_samples + empty;
  const auto forward_pass = static_cast<int>(program_.segments.size());
  if (all == 0) {
    program_.segments.push_back({Phase::backward, {}, {}});
    program_.schedule.push_back({forward_pass, 0, 0});
  } else {
    program_.segments.push_back({Phase::forward, {}, forward});
    program_.segments.push_back({Phase::backward, Variant::first, backward(false, first)});
    if (all > 1) program_.segments.push_back({Phase::backward, Variant::accumulate, backward(true, later)});
    if (empty > 0) program_.segments.push_back({Phase::forward, Variant::empty, zero_inputs()});
    const int zeros = static_cast<int>(program_.segments.size()) - 1;
    for (int i = 0; i < all; ++i) {
      const bool is_empty = i >= with_samples;
      if (is_empty) program_.schedule.push_back({zeros, -1, 0});
      program_.schedule.push_back({forward_pass, is_empty ? -1 : i, 0});
      program_.schedule.push_back({forward_pass + (i == 0 ? 1 : 2), is_empty ? -1 : i, 0});
    }
  }
  if (samples == 0) leave_batch();
  program_.schedule.push_back({static_cast<int>(program_.segments.size()), 0, 0});
  program_.segments.push_back({Phase::update, {}, {}});
  return take();
}

Program ProgramBuilder::evaluation(std::int64_t samples, bool runs_empty) {
  program_.name = format("evaluate {}", samples);
  std::vector<Op> ops;
  if (samples > 0 || runs_empty) {
    ops = graph_.ops;
    for (Op& op : sums(false)) ops.push_back(std::move(op));
    for (Op& op : sums_of_heads(false, true)) ops.push_back(std::move(op));
  }
  program_.segments = {{Phase::forward, {}, std::move(ops)}};
  program_.schedule = {{0, 0, 0}};
  if (samples == 0 && runs_empty) {
    program_.segments.push_back({Phase::forward, Variant::empty, zero_inputs()});
    program_.schedule = {{1, -1, 0}, {0, -1, 0}};
  }
  if (samples == 0) leave_batch();
  return take();
}

Program ProgramBuilder::prediction(std::int64_t samples) {
  program_.name = format("predict {}", samples);
  program_.flat = order_parameters(graph_, {}, {}, [](const GraphParameter&) { return false; });
  std::vector<Op> ops;
  if (samples == 0) {
    leave_batch();
  } else {
    ops = graph_.ops;
    for (Op& op : predictions()) ops.push_back(std::move(op));
  }
  program_.segments = {{Phase::forward, {}, std::move(ops)}};
  program_.schedule = {{0, 0, 0}};
  return take();
}

// Returns the ops that set all tensors of a micro-batch without samples to zero.
std::vector<Op> ProgramBuilder::zero_inputs() const {
  const BatchTensors& batch = program_.batch;
  std::vector<TensorId> tensors = batch.inputs;
  tensors.insert(tensors.end(), batch.targets.begin(), batch.targets.end());
  tensors.insert(tensors.end(), {batch.weights, batch.samples});
  std::vector<Op> ops;
  for (TensorId id : tensors) {
    if (id == no_tensor) continue;
    const Tensor& tensor = graph_.tensor(id);
    const bool numbers = id == batch.samples;
    ops.push_back({std::make_shared<ZeroInput>(tensor.type, numbers), {}, {id}, tensor.name, {}});
  }
  return ops;
}

// Removes the batch from the program, for a rank without samples.
void ProgramBuilder::leave_batch() {
  program_.batch = {};
  program_.micro_batch_samples = 0;
  program_.step.predictions.clear();
}

// Removes the tensors of the batch that no op reads, for example on a stage of a pipeline.
void ProgramBuilder::leave_unread_batch() {
  std::set<TensorId> read;
  for (const Segment& segment : program_.segments) {
    for (const Op& op : segment.ops) read.insert(op.inputs.begin(), op.inputs.end());
  }
  const auto leave = [&](TensorId& tensor) {
    if (!read.contains(tensor)) tensor = no_tensor;
  };
  BatchTensors& batch = program_.batch;
  std::for_each(batch.inputs.begin(), batch.inputs.end(), leave);
  std::for_each(batch.targets.begin(), batch.targets.end(), leave);
  leave(batch.weights);
  leave(batch.samples);
}

Program ProgramBuilder::take() {
  leave_unread_batch();
  program_.tensors = graph_.tensors;
  return std::move(program_);
}

}  // namespace trainctl
