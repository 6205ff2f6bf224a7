// Builds the segments and the schedule of one rank's program for training, evaluation and prediction.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/training/penalize.h"
#include "core/graph/ops/training/update.h"
#include "core/graph/passes/fuse.h"
#include "core/optim/optimizer.h"
#include "core/program/builder.h"
#include "core/program/fused_loss.h"

namespace trainctl {

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
