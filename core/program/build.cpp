// From a network to the program of one rank: segments and schedule.
#include "core/program/build.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"
#include "core/graph/fuse.h"
#include "core/graph/ops/activations.h"
#include "core/graph/ops/metrics.h"
#include "core/graph/ops/shaping.h"
#include "core/graph/ops/softmax.h"
#include "core/graph/ops/statistics.h"
#include "core/graph/ops/update.h"
#include "core/metrics/means.h"
#include "core/optim/optimizer.h"
#include "core/program/finish.h"
#include "core/program/flat_layout.h"
#include "core/program/placements.h"

namespace trainctl {
namespace {

// The program of one rank while it is built: segments and schedule. The functions of finish.h add the flat layout and
// the update.
class Builder {
 public:
  // The graph of `network` has been cut and fused.
  Builder(const ProgramSpec& spec, Network network);

  Program training(std::int64_t samples, int micro_batches);
  Program evaluation(std::int64_t samples);
  Program prediction(std::int64_t samples);
  // The running statistics that the update moves. Valid after training().
  std::vector<StatisticUpdate> statistics() const;

 private:
  void add_tensors();
  void add_output(std::size_t output);
  void add_host_values();
  void add_predictions(std::size_t output);
  Op accumulate_statistics(bool accumulate) const;
  std::vector<Op> sums(bool accumulate) const;
  void append_sums(std::size_t output, bool accumulate, std::vector<Op>& ops) const;
  std::vector<TensorId> reduced() const;
  void leave_batch();
  Program take();

  TensorId add(std::string name, Shape shape, DType dtype, Role role) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.type = {std::move(shape), dtype};
    tensor.role = role;
    return graph_.add_tensor(std::move(tensor));
  }

  const ProgramSpec& spec_;
  std::vector<ResolvedOutput> outputs_;
  Graph graph_;
  Program program_;
  std::vector<TensorId> statistic_sums_;  // by number in graph_.statistics; no_tensor where a statistic does not move
  std::vector<Op> prediction_ops_;        // ops from graph_.outputs to step.predictions
  std::vector<TensorId> loss_gradients_;  // by output: the gradient that the backward pass starts from
  std::vector<TensorId> unscaled_gradients_;    // by output, with a loss scale: the gradient before it is scaled
  std::vector<std::vector<TensorId>> metrics_;  // by output: its tensors of step.metrics
};

Builder::Builder(const ProgramSpec& spec, Network network)
    : spec_(spec),
      outputs_(std::move(network.outputs)),
      graph_(std::move(network.graph)),
      loss_gradients_(outputs_.size(), no_tensor),
      unscaled_gradients_(outputs_.size(), no_tensor),
      metrics_(outputs_.size()) {
  program_.layers = std::move(network.layers);
  program_.micro_batch_samples = graph_.batch;
  program_.chance_loss = network.chance_loss;
  add_tensors();
}

// Adds the tensors that losses, sums and the host need beside those of the model.
void Builder::add_tensors() {
  BatchTensors& batch = program_.batch;
  batch.inputs = graph_.inputs;
  batch.samples = graph_.samples;
  program_.step.predictions.assign(outputs_.size(), no_tensor);
  if (spec_.predicts()) {
    for (std::size_t i = 0; i < outputs_.size(); ++i) add_predictions(i);
    return;
  }
  program_.results = metric_results(outputs_);
  batch.weights = add("weights", spec_.weight.with_front(graph_.batch), DType::float32, Role::input);
  for (const GraphStatistic& statistic : graph_.statistics) {
    const Tensor moving = graph_.tensor(statistic.moving);
    statistic_sums_.push_back(statistic.batch_value == no_tensor
                                  ? no_tensor
                                  : add(moving.name + "/sum", moving.type.shape, DType::float32, Role::reduced));
  }
  StepTensors& step = program_.step;
  for (const ResolvedOutput& output : outputs_) {
    step.losses.push_back(add(output.prefixed("loss"), {}, DType::float32, Role::reduced));
  }
  step.count = add("count", {}, DType::float32, Role::reduced);
  step.step = graph_.step;
  if (graph_.training) add_host_values();
  for (std::size_t i = 0; i < outputs_.size(); ++i) add_output(i);
}

// Adds the scalars that the host writes before a training step or reads after it.
void Builder::add_host_values() {
  StepTensors& step = program_.step;
  if (step.step == no_tensor) step.step = add("step", {}, DType::int64, Role::scalar);
  step.learning_rate = add("learning_rate", {}, DType::float32, Role::scalar);
  step.stop_request = add("stop_request", {}, DType::float32, Role::scalar);
  step.gradient_norm = add("gradient_norm", {}, DType::float32, Role::scalar);
  if (spec_.compute == DType::float16) step.loss_scale = add("loss_scale", {}, DType::float32, Role::scalar);
}

// Adds the targets, the metrics and, in training, the loss gradient of an output.
void Builder::add_output(std::size_t number) {
  const ResolvedOutput& output = outputs_[number];
  const TensorType type = graph_.tensor(graph_.outputs[number]).type;
  const TensorType targets = target_type(output.target_form, type.shape);
  program_.target_forms.push_back(output.target_form);
  program_.batch.targets.push_back(add(output.prefixed("targets"), targets.shape, targets.dtype, Role::input));
  for (const ResolvedMetric& metric : output.metrics) {
    const int sums = sums_of(metric.rule);
    metrics_[number].push_back(
        add(output.prefixed(metric.name), sums == 1 ? Shape{} : Shape{sums}, DType::float32, Role::reduced));
    program_.step.metrics.push_back(metrics_[number].back());
  }
  if (graph_.training) {
    TensorId& gradient = loss_gradients_[number];
    gradient = add(graph_.tensor(graph_.outputs[number]).name + "/gradient", type.shape, type.dtype, Role::activation);
    if (spec_.compute == DType::float16) {
      unscaled_gradients_[number] = gradient;
      gradient = add(output.prefixed("loss") + "/gradient/scaled", type.shape, type.dtype, Role::activation);
    }
  }
  const bool wanted = std::any_of(output.metrics.begin(), output.metrics.end(),
                                  [](const ResolvedMetric& metric) { return metric.of_predictions; });
  if (!graph_.training || wanted) add_predictions(number);
}

// Adds the ops that make an output's predictions: a cast to float32, and the softmax or sigmoid that was left out
// because the loss takes logits.
void Builder::add_predictions(std::size_t number) {
  const ResolvedOutput& output = outputs_[number];
  TensorId& predictions = program_.step.predictions[number];
  predictions = graph_.outputs[number];
  const std::string prefix = output.prefixed("predictions");
  const auto append = [&](std::shared_ptr<const OpDef> def, const char* suffix) {
    const TensorId next = add(prefix + suffix, graph_.tensor(predictions).type.shape, DType::float32, Role::activation);
    prediction_ops_.push_back({std::move(def), {predictions}, {next}, prefix, {}});
    predictions = next;
  };
  if (graph_.tensor(predictions).type.dtype != DType::float32) {
    append(std::make_shared<Cast>(DType::float32), "/float32");
  }
  const FinalActivation folded = output.loss.folded;
  if (folded == FinalActivation::softmax) append(std::make_shared<Softmax>(), "/softmax");
  if (folded == FinalActivation::sigmoid) {
    append(std::make_shared<Activation>(ActivationFunction{ActivationKind::sigmoid}), "/sigmoid");
  }
}

// The op that adds the batch statistics of all layers to their sums; it has no outputs where no statistic moves.
Op Builder::accumulate_statistics(bool accumulate) const {
  Op op{std::make_shared<AccumulateStatistics>(accumulate), {}, {}, "statistics", {}};
  for (std::size_t i = 0; i < graph_.statistics.size(); ++i) {
    if (statistic_sums_[i] == no_tensor) continue;
    op.inputs.push_back(graph_.statistics[i].batch_value);
    op.outputs.push_back(statistic_sums_[i]);
  }
  op.inputs.push_back(program_.batch.weights);
  return op;
}

std::vector<StatisticUpdate> Builder::statistics() const {
  std::vector<StatisticUpdate> updates;
  for (std::size_t i = 0; i < graph_.statistics.size(); ++i) {
    const GraphStatistic& statistic = graph_.statistics[i];
    if (statistic_sums_[i] != no_tensor) updates.push_back({statistic_sums_[i], statistic.moving, statistic.momentum});
  }
  return updates;
}

// The ops that turn a micro-batch's outputs into sums, and in training into the gradients of the losses.
std::vector<Op> Builder::sums(bool accumulate) const {
  std::vector<Op> ops;
  if (Op statistics = accumulate_statistics(accumulate); !statistics.outputs.empty())
    ops.push_back(std::move(statistics));
  ops.insert(ops.end(), prediction_ops_.begin(), prediction_ops_.end());
  for (std::size_t i = 0; i < outputs_.size(); ++i) append_sums(i, accumulate, ops);
  return ops;
}

// Appends the ops of one output's metrics and loss. The first output's loss counts the samples for all outputs.
void Builder::append_sums(std::size_t number, bool accumulate, std::vector<Op>& ops) const {
  const ResolvedOutput& output = outputs_[number];
  const StepTensors& step = program_.step;
  const TensorId logits = graph_.outputs[number];
  const TensorId targets = program_.batch.targets[number], weights = program_.batch.weights;
  for (std::size_t i = 0; i < output.metrics.size(); ++i) {
    const ResolvedMetric& metric = output.metrics[i];
    ops.push_back({std::make_shared<Metric>(metric.rule, accumulate),
                   {metric.of_predictions ? step.predictions[number] : logits, targets, weights},
                   {metrics_[number][i]},
                   output.prefixed(metric.name),
                   metric.place});
  }
  const bool counts = number == 0, scales = step.loss_scale != no_tensor;
  std::vector<TensorId> results{step.losses[number]};
  if (counts) results.push_back(step.count);
  if (graph_.training) results.push_back(scales ? unscaled_gradients_[number] : loss_gradients_[number]);
  const auto scale = static_cast<float>(output.weight / static_cast<double>(output.rows_each));
  ops.push_back({std::make_shared<Loss>(output.loss.rule, graph_.training, accumulate, scale, counts),
                 {logits, targets, weights},
                 std::move(results),
                 output.prefixed("loss"),
                 output.loss.place});
  if (scales) {
    ops.push_back({std::make_shared<Scale>(),
                   {unscaled_gradients_[number], step.loss_scale},
                   {loss_gradients_[number]},
                   output.prefixed("loss_scale"),
                   output.loss.place});
  }
}

// The sums that are reduced over the ranks, in the order in which they lie behind the gradients.
std::vector<TensorId> Builder::reduced() const {
  std::vector<TensorId> tensors = statistic_sums_;
  std::erase(tensors, no_tensor);
  const StepTensors& step = program_.step;
  tensors.insert(tensors.end(), step.losses.begin(), step.losses.end());
  tensors.insert(tensors.end(), step.metrics.begin(), step.metrics.end());
  tensors.push_back(step.count);
  return tensors;
}

Program Builder::training(std::int64_t samples, int micro_batches) {
  const auto& optimizer = spec_.optimizer.as<OptimizerOptions>();
  // Both variants of the backward pass name the same tensors, since differentiation is a function of the graph.
  Graph again = graph_;
  Backward first = fuse(differentiate(graph_, loss_gradients_, false));
  Backward later = fuse(differentiate(again, loss_gradients_, true));
  require(graph_.tensors.size() == again.tensors.size(), "differentiation is deterministic");
  const auto decays = [&](const GraphParameter& parameter) { return optimizer.decays(parameter.decay); };
  program_.flat = order_flat(graph_, first, reduced(), decays, state_names(optimizer.rule()));
  program_.micro_batches = micro_batches;

  const auto backward = [&](bool accumulate, Backward& gradients) {
    std::vector<Op> ops = sums(accumulate);
    std::move(gradients.ops.begin(), gradients.ops.end(), std::back_inserter(ops));
    return ops;
  };
  if (samples == 0) {
    leave_batch();
    program_.segments.push_back({Phase::backward, {}, {}});
    program_.schedule.push_back({0, 0, 0});
    program_.name = "train 0";
  } else {
    program_.name = micro_batches == 1 ? format("train {}", samples)
                                       : format("train {} in {} micro-batches", samples, micro_batches);
    program_.segments.push_back({Phase::forward, {}, graph_.ops});
    program_.segments.push_back({Phase::backward, Variant::first, backward(false, first)});
    if (micro_batches > 1) program_.segments.push_back({Phase::backward, Variant::accumulate, backward(true, later)});
    for (int i = 0; i < micro_batches; ++i) {
      program_.schedule.push_back({0, i, 0});
      program_.schedule.push_back({i == 0 ? 1 : 2, i, 0});
    }
  }
  program_.schedule.push_back({static_cast<int>(program_.segments.size()), 0, 0});
  program_.segments.push_back({Phase::update, {}, {}});
  return take();
}

Program Builder::evaluation(std::int64_t samples) {
  program_.name = format("evaluate {}", samples);
  std::vector<Op> ops;
  if (samples == 0) {
    leave_batch();
  } else {
    ops = graph_.ops;
    for (Op& op : sums(false)) ops.push_back(std::move(op));
  }
  program_.segments = {{Phase::forward, {}, std::move(ops)}};
  program_.schedule = {{0, 0, 0}};
  return take();
}

Program Builder::prediction(std::int64_t samples) {
  program_.name = format("predict {}", samples);
  program_.flat = order_flat(graph_, {}, {}, [](const GraphParameter&) { return false; }, {});
  std::vector<Op> ops;
  if (samples == 0) {
    leave_batch();
  } else {
    ops = graph_.ops;
    ops.insert(ops.end(), prediction_ops_.begin(), prediction_ops_.end());
  }
  program_.segments = {{Phase::forward, {}, std::move(ops)}};
  program_.schedule = {{0, 0, 0}};
  return take();
}

// Makes a program for a rank without samples, which reads no tensor of the batch.
void Builder::leave_batch() {
  program_.batch = {};
  program_.micro_batch_samples = 0;
  program_.step.predictions.clear();
}

Program Builder::take() {
  program_.tensors = graph_.tensors;
  return std::move(program_);
}

// Builds the network of this rank; its graph is cut by the strategies, then fused.
Network cut_network(const ProgramSpec& spec, std::int64_t micro_batch, bool training, const Parallelism& parallelism,
                    Reader& reader) {
  Network network = build_network(spec, micro_batch, training, reader);
  if (!reader.ok()) return network;
  if (parallelism.cut) network.graph = parallelism.cut(std::move(network.graph));
  network.graph = fuse(std::move(network.graph), training);
  return network;
}

Program distributed(Program program, const Parallelism& parallelism) {
  return parallelism.distribute ? parallelism.distribute(std::move(program)) : program;
}

// States and checks the placements of a finished program's tensors.
Program placed(Program program, const Parallelism& parallelism) {
  check_placements(program, parallelism.rank.mesh);
  return program;
}

}  // namespace

Program training_program(const ProgramSpec& spec, std::int64_t samples, int micro_batches, Reader& reader,
                         const Parallelism& parallelism) {
  require(micro_batches >= 1 && samples % micro_batches == 0, "micro-batches divide a rank's samples");
  const std::int64_t micro_batch = std::max<std::int64_t>(samples / micro_batches, 1);
  Network network = cut_network(spec, micro_batch, true, parallelism, reader);
  if (!reader.ok()) return {};
  Builder builder(spec, std::move(network));
  Program program = distributed(builder.training(samples, micro_batches), parallelism);
  const UpdateSpec update{spec.optimizer.as<OptimizerOptions>(), spec.optimizer.place, spec.clip_norm,
                          builder.statistics()};
  return placed(finish_training(std::move(program), update, parallelism.rank), parallelism);
}

Program evaluation_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism) {
  const Program training = training_program(spec, 1, 1, reader, parallelism);
  if (!reader.ok()) return {};
  Network network = cut_network(spec, std::max<std::int64_t>(samples, 1), false, parallelism, reader);
  if (!reader.ok()) return {};
  Program program = distributed(Builder(spec, std::move(network)).evaluation(samples), parallelism);
  return placed(finish_evaluation(std::move(program), training), parallelism);
}

Program prediction_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism) {
  ProgramSpec of_network = spec;
  for (ProgramSpec::Output& output : of_network.outputs) output.loss = {};
  Network network = cut_network(of_network, std::max<std::int64_t>(samples, 1), false, parallelism, reader);
  if (!reader.ok()) return {};
  Program program = distributed(Builder(of_network, std::move(network)).prediction(samples), parallelism);
  return placed(finish_prediction(std::move(program)), parallelism);
}

int micro_batches_of(std::int64_t samples, std::int64_t largest) {
  require(largest >= 1, "micro-batches have samples");
  // The most micro-batches with at least half of `largest` samples each, unless the loop finds the right size.
  std::int64_t best = 1;
  for (std::int64_t count = 1; count <= samples && 2 * (samples / count) >= largest; ++count) {
    if (samples % count != 0) continue;
    best = count;
    if (samples / count <= largest) break;
  }
  return static_cast<int>(best);
}

}  // namespace trainctl
