// From a model, a loss and an optimizer to the program of one rank.
#include "core/program/build.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/activations.h"
#include "core/graph/ops/metrics.h"
#include "core/graph/ops/shaping.h"
#include "core/graph/ops/softmax.h"
#include "core/graph/ops/statistics.h"
#include "core/graph/ops/update.h"
#include "core/metrics/metric.h"
#include "core/optim/optimizer.h"
#include "core/program/flat_layout.h"
#include "core/program/fuse.h"

namespace trainctl {
namespace {

// A program under construction.
class Builder {
 public:
  Builder(const ProgramSpec& spec, std::int64_t micro_batch, bool training, Reader& reader);

  // The finished programs. Only after the reader found nothing wrong.
  Program training(std::int64_t samples, int micro_batches) &&;
  Program evaluation(const Program& training, std::int64_t samples) &&;

 private:
  void add_tensors();
  void add_predictions();
  Op accumulate_statistics(bool accumulate) const;
  Op update_statistics() const;
  std::vector<Op> sums(bool accumulate) const;
  std::vector<Op> update_ops(const OptimizerOptions& optimizer) const;
  Op contribute_zeros(TensorId region, std::int64_t count);
  std::vector<TensorId> reduced() const;
  Program finish() &&;

  TensorId add(std::string name, Shape shape, DType dtype, Role role) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.type = {std::move(shape), dtype};
    tensor.role = role;
    return graph_.add_tensor(std::move(tensor));
  }

  const ProgramSpec& spec_;
  bool training_;
  ResolvedLoss loss_;
  std::vector<ResolvedMetric> metrics_;
  Graph graph_;
  Program program_;
  std::vector<TensorId> statistic_sums_;    // for each of graph_.statistics; no_tensor where it stands still
  std::vector<Op> prediction_ops_;          // from graph_.output to step.predictions
  TensorId loss_gradient_ = no_tensor;      // what the backward pass starts from
  TensorId unscaled_gradient_ = no_tensor;  // what the loss gives, where that is scaled
  TensorId divisor_ = no_tensor;            // of the summed gradient: the count, times the loss scale
};

Builder::Builder(const ProgramSpec& spec, std::int64_t micro_batch, bool training, Reader& reader)
    : spec_(spec), training_(training), loss_(resolve_loss(spec.loss, final_activation(*spec.model), reader)) {
  BuildOptions options;
  options.batch = micro_batch;
  options.sample = spec.sample;
  options.format = spec.format;
  options.training = training;
  options.compute = spec.compute;
  options.seed = spec.seed;
  options.logits = loss_.folded != FinalActivation::none;
  BuiltModel built = build_model(*spec.model, options, reader);
  if (!reader.ok()) return;
  graph_ = fuse(std::move(built.graph), training_);
  program_.layers = std::move(built.layers);
  program_.micro_batch_samples = micro_batch;
  const Shape& output = graph_.tensor(graph_.output).type.shape;
  program_.target_form = match_targets(loss_, output, {spec.classes, spec.target, spec.label_mode}, reader);
  metrics_ = resolve_metrics(spec.metrics, loss_, output, reader);
  if (!reader.ok()) return;
  program_.chance_loss = chance_loss(loss_.rule, output);
  add_tensors();
}

// Everything that loss, sums, update and host need beside the model's own tensors.
void Builder::add_tensors() {
  const TensorType output = graph_.tensor(graph_.output).type;
  const TensorType targets = target_type(program_.target_form, output.shape);
  BatchTensors& batch = program_.batch;
  batch.inputs = graph_.input;
  batch.samples = graph_.samples;
  batch.targets = add("targets", targets.shape, targets.dtype, Role::input);
  batch.weights = add("weights", {output.shape[0]}, DType::float32, Role::input);

  for (const GraphStatistic& statistic : graph_.statistics) {
    const Tensor moving = graph_.tensor(statistic.moving);
    statistic_sums_.push_back(statistic.batch_value == no_tensor
                                  ? no_tensor
                                  : add(moving.name + "/sum", moving.type.shape, DType::float32, Role::reduced));
  }
  StepTensors& step = program_.step;
  step.loss = add("loss", {}, DType::float32, Role::reduced);
  for (const auto& metric : metrics_) step.metrics.push_back(add(metric.name, {}, DType::float32, Role::reduced));
  step.count = add("count", {}, DType::float32, Role::reduced);
  step.step = graph_.step;
  if (training_) {
    step.agree = add("agree", {agree_flags}, DType::float32, Role::reduced);
    if (step.step == no_tensor) step.step = add("step", {}, DType::int64, Role::scalar);
    step.learning_rate = add("learning_rate", {}, DType::float32, Role::scalar);
    step.stop_request = add("stop_request", {}, DType::float32, Role::scalar);
    step.gradient_norm = add("gradient_norm", {}, DType::float32, Role::scalar);
    loss_gradient_ = add(graph_.tensor(graph_.output).name + "/gradient", output.shape, output.dtype, Role::activation);
    divisor_ = step.count;
    if (spec_.compute == DType::float16) {
      step.loss_scale = add("loss_scale", {}, DType::float32, Role::scalar);
      divisor_ = add("divisor", {}, DType::float32, Role::scalar);
      unscaled_gradient_ = loss_gradient_;
      loss_gradient_ = add("loss/gradient/scaled", output.shape, output.dtype, Role::activation);
    }
  }
  const bool wanted = std::any_of(metrics_.begin(), metrics_.end(), [](const auto& m) { return m.of_predictions; });
  if (!training_ || wanted) add_predictions();
}

// What stands at the end of the network and was left out for the loss, in float32.
void Builder::add_predictions() {
  TensorId& predictions = program_.step.predictions;
  predictions = graph_.output;
  const auto append = [&](std::shared_ptr<const OpDef> def, const char* name) {
    const TensorId next = add(name, graph_.tensor(predictions).type.shape, DType::float32, Role::activation);
    prediction_ops_.push_back({std::move(def), {predictions}, {next}, "predictions", {}});
    predictions = next;
  };
  if (graph_.tensor(predictions).type.dtype != DType::float32) {
    append(std::make_shared<Cast>(DType::float32), "predictions/float32");
  }
  if (loss_.folded == FinalActivation::softmax) append(std::make_shared<Softmax>(), "predictions/softmax");
  if (loss_.folded == FinalActivation::sigmoid) {
    append(std::make_shared<Activation>(ActivationFunction{ActivationKind::sigmoid}), "predictions/sigmoid");
  }
}

// Of all layers at once; without outputs where no statistic moves.
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

Op Builder::update_statistics() const {
  std::vector<float> momenta;
  Op op{nullptr, {}, {}, "statistics", {}};
  for (std::size_t i = 0; i < graph_.statistics.size(); ++i) {
    if (statistic_sums_[i] == no_tensor) continue;
    momenta.push_back(graph_.statistics[i].momentum);
    op.inputs.push_back(statistic_sums_[i]);
    op.outputs.push_back(graph_.statistics[i].moving);
  }
  op.def = std::make_shared<UpdateStatistics>(std::move(momenta));
  op.inputs.insert(op.inputs.end(), {program_.step.count, program_.step.agree});
  return op;
}

// The ops that turn a micro-batch's output into sums, and in training into the gradient of the loss.
std::vector<Op> Builder::sums(bool accumulate) const {
  const StepTensors& step = program_.step;
  const BatchTensors& batch = program_.batch;
  std::vector<Op> ops;
  if (Op statistics = accumulate_statistics(accumulate); !statistics.outputs.empty())
    ops.push_back(std::move(statistics));
  ops.insert(ops.end(), prediction_ops_.begin(), prediction_ops_.end());
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    const ResolvedMetric& metric = metrics_[i];
    const TensorId from = metric.of_predictions ? step.predictions : graph_.output;
    ops.push_back({std::make_shared<Metric>(metric.kind, metric.k, accumulate),
                   {from, batch.targets, batch.weights},
                   {step.metrics[i]},
                   metric.name,
                   spec_.metrics[i].place});
  }
  std::vector<TensorId> outputs{step.loss, step.count};
  const bool scales = step.loss_scale != no_tensor;
  if (training_) outputs.push_back(scales ? unscaled_gradient_ : loss_gradient_);
  ops.push_back({std::make_shared<Loss>(loss_.rule, training_, accumulate),
                 {graph_.output, batch.targets, batch.weights},
                 std::move(outputs),
                 "loss",
                 loss_.place});
  if (scales) {
    ops.push_back({std::make_shared<Scale>(),
                   {unscaled_gradient_, step.loss_scale},
                   {loss_gradient_},
                   "loss_scale",
                   loss_.place});
  }
  return ops;
}

// What is reduced behind the gradients, in its order.
std::vector<TensorId> Builder::reduced() const {
  std::vector<TensorId> tensors = statistic_sums_;
  std::erase(tensors, no_tensor);
  const StepTensors& step = program_.step;
  tensors.push_back(step.loss);
  tensors.insert(tensors.end(), step.metrics.begin(), step.metrics.end());
  tensors.push_back(step.count);
  tensors.push_back(step.agree);
  return tensors;
}

std::vector<Op> Builder::update_ops(const OptimizerOptions& optimizer) const {
  const StepTensors& step = program_.step;
  std::vector<TensorId> updated{step.parameters};
  updated.insert(updated.end(), step.states.begin(), step.states.end());
  std::vector<Op> ops;
  ops.push_back({std::make_shared<Agree>(), {step.loss, step.stop_request}, {step.agree}, "agree", {}});
  if (step.loss_scale != no_tensor) {
    ops.push_back({std::make_shared<Scale>(), {step.count, step.loss_scale}, {divisor_}, "divisor", {}});
  }
  ops.push_back({std::make_shared<GradientNorm>(program_.flat.trainable_count),
                 {step.gradients, divisor_},
                 {step.gradient_norm},
                 "gradient_norm",
                 {}});
  ops.push_back({optimizer.update(update_ranges(program_.flat, optimizer.by_parameter()), spec_.clip_norm),
                 {step.gradients, step.learning_rate, step.step, divisor_, step.agree, step.gradient_norm},
                 std::move(updated),
                 "update",
                 spec_.optimizer.place});
  if (Op statistics = update_statistics(); !statistics.outputs.empty()) ops.push_back(std::move(statistics));
  return ops;
}

Program Builder::training(std::int64_t samples, int micro_batches) && {
  const auto& optimizer = spec_.optimizer.as<OptimizerOptions>();
  // Both variants of the backward pass name the same tensors, since differentiation is a function of the graph.
  Graph again = graph_;
  Backward first = fuse(differentiate(graph_, loss_gradient_, false));
  Backward later = fuse(differentiate(again, loss_gradient_, true));
  require(graph_.tensors.size() == again.tensors.size(), "differentiation is deterministic");

  const auto decays = [&](const GraphParameter& parameter) { return optimizer.decays(parameter.decay); };
  FlatLayout& flat = program_.flat;
  flat = flat_layout(graph_, first, reduced(), decays, state_names(optimizer.rule()));
  StepTensors& step = program_.step;
  step.parameters = add("parameters", {flat.parameter_count}, DType::float32, Role::parameter);
  step.gradients = add("gradients", {flat.gradient_count}, DType::float32, Role::gradient);
  for (const std::string& state : flat.states) {
    step.states.push_back(add(state, {flat.trainable_count}, DType::float32, Role::state));
  }

  const auto backward = [&](bool accumulate, Backward& gradients) {
    std::vector<Op> ops = sums(accumulate);
    std::move(gradients.ops.begin(), gradients.ops.end(), std::back_inserter(ops));
    return ops;
  };
  if (samples == 0) {
    program_.segments.push_back({Phase::backward, {}, {contribute_zeros(step.gradients, flat.gradient_count)}});
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
  program_.micro_batches = micro_batches;
  program_.schedule.push_back({static_cast<int>(program_.segments.size()), 0, 0});
  program_.segments.push_back({Phase::update, {}, update_ops(optimizer)});
  return std::move(*this).finish();
}

// A rank without samples takes part with zeros, and reads nothing of the batch.
Op Builder::contribute_zeros(TensorId region, std::int64_t count) {
  program_.batch = {};
  program_.micro_batch_samples = 0;
  program_.step.predictions = no_tensor;
  return {std::make_shared<ZeroGradients>(count), {}, {region}, "no samples", {}};
}

Program Builder::evaluation(const Program& training, std::int64_t samples) && {
  StepTensors& step = program_.step;
  step.parameters = add("parameters", {training.flat.parameter_count}, DType::float32, Role::parameter);
  const std::int64_t sums_count = training.flat.gradient_count - training.flat.trainable_count;
  step.sums = add("sums", {sums_count}, DType::float32, Role::reduced);
  program_.flat = same_layout(training, graph_.tensors);
  program_.name = format("evaluate {}", samples);
  std::vector<Op> ops;
  if (samples == 0) {
    ops.push_back(contribute_zeros(step.sums, sums_count));
  } else {
    ops = graph_.ops;
    for (Op& op : sums(false)) ops.push_back(std::move(op));
  }
  program_.segments = {{Phase::forward, {}, std::move(ops)}};
  program_.schedule = {{0, 0, 0}};
  return std::move(*this).finish();
}

Program Builder::finish() && {
  program_.tensors = std::move(graph_.tensors);
  return std::move(program_);
}

}  // namespace

Program training_program(const ProgramSpec& spec, std::int64_t samples, int micro_batches, Reader& reader) {
  require(micro_batches >= 1 && samples % micro_batches == 0, "micro-batches divide a rank's samples");
  const std::int64_t micro_batch = std::max<std::int64_t>(samples / micro_batches, 1);
  Builder builder(spec, micro_batch, true, reader);
  return reader.ok() ? std::move(builder).training(samples, micro_batches) : Program{};
}

Program evaluation_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader) {
  const Program training = training_program(spec, 1, 1, reader);
  if (!reader.ok()) return {};
  return Builder(spec, std::max<std::int64_t>(samples, 1), false, reader).evaluation(training, samples);
}

std::vector<std::string> result_names(const ProgramSpec& spec) {
  std::vector<std::string> names{"loss"};
  for (const Choice& metric : spec.metrics) names.push_back(metric.name);
  return names;
}

int micro_batches_of(std::int64_t samples, std::int64_t largest) {
  require(largest >= 1, "micro-batches have samples");
  std::int64_t best =
      1;  // the most that divide with at least half of `largest` each, if none of the right size is found
  for (std::int64_t count = 1; count <= samples && 2 * (samples / count) >= largest; ++count) {
    if (samples % count != 0) continue;
    best = count;
    if (samples / count <= largest) break;
  }
  return static_cast<int>(best);
}

}  // namespace trainctl
