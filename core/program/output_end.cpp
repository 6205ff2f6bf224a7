// Targets, metrics, losses and predictions of outputs.
#include "core/program/output_end.h"

#include <algorithm>
#include <utility>

#include "core/graph/ops/activations.h"
#include "core/graph/ops/metrics.h"
#include "core/graph/ops/shaping.h"
#include "core/graph/ops/softmax.h"
#include "core/graph/ops/update.h"
#include "core/metrics/targets.h"

namespace trainctl {
namespace {

TensorId add(Graph& graph, std::string name, TensorType type, Role role) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = std::move(type);
  tensor.role = role;
  return graph.add_tensor(std::move(tensor));
}

// What stands at the end of an output and was left out for the loss, in float32.
void add_predictions(OutputEnd& end, Graph& graph) {
  end.predictions = end.logits;
  const std::string name = end.output.prefixed("predictions");
  const auto append = [&](std::shared_ptr<const OpDef> def, const char* suffix) {
    const TensorType type{graph.tensor(end.logits).type.shape, DType::float32};
    const TensorId next = add(graph, name + suffix, type, Role::activation);
    end.prediction_ops.push_back({std::move(def), {end.predictions}, {next}, name, {}});
    end.predictions = next;
  };
  if (graph.tensor(end.logits).type.dtype != DType::float32) {
    append(std::make_shared<Cast>(DType::float32), "/float32");
  }
  const FinalActivation folded = end.output.loss.folded;
  if (folded == FinalActivation::softmax) append(std::make_shared<Softmax>(), "/softmax");
  if (folded == FinalActivation::sigmoid) {
    append(std::make_shared<Activation>(ActivationFunction{ActivationKind::sigmoid}), "/sigmoid");
  }
}

// The sums of an output.
void add_sums(OutputEnd& end, Graph& graph) {
  const ResolvedOutput& output = end.output;
  end.loss = add(graph, output.prefixed("loss"), {}, Role::reduced);
  for (const ResolvedMetric& metric : output.metrics) {
    const int sums = sums_of(metric.rule);
    const TensorType sum_type{sums == 1 ? Shape{} : Shape{sums}, DType::float32};
    end.metrics.push_back(add(graph, output.prefixed(metric.name), sum_type, Role::reduced));
  }
}

}  // namespace

OutputEnd prediction_end(ResolvedOutput output, TensorId logits, Graph& graph) {
  OutputEnd end;
  end.output = std::move(output);
  end.logits = logits;
  add_predictions(end, graph);
  return end;
}

OutputEnd loss_end(ResolvedOutput resolved, TensorId logits, Graph& graph) {
  OutputEnd end;
  end.output = std::move(resolved);
  end.logits = logits;
  const ResolvedOutput& output = end.output;
  if (logits == no_tensor) {
    add_sums(end, graph);
    return end;
  }
  const TensorType type = graph.tensor(logits).type;
  end.targets = add(graph, output.prefixed("targets"), target_type(output.target_form, type.shape), Role::input);
  add_sums(end, graph);
  if (graph.training) {
    end.loss_gradient = add(graph, graph.tensor(logits).name + "/gradient", type, Role::activation);
    if (graph.compute == DType::float16) {
      end.unscaled_gradient = end.loss_gradient;
      end.loss_gradient = add(graph, output.prefixed("loss") + "/gradient/scaled", type, Role::activation);
    }
  }
  const bool wanted = std::any_of(output.metrics.begin(), output.metrics.end(),
                                  [](const ResolvedMetric& metric) { return metric.of_predictions; });
  if (!graph.training || wanted) add_predictions(end, graph);
  return end;
}

std::vector<Op> sum_ops(const OutputEnd& end, const SharedSums& shared, bool counts, bool training, bool accumulate) {
  const ResolvedOutput& output = end.output;
  std::vector<Op> ops;
  for (std::size_t i = 0; i < output.metrics.size(); ++i) {
    const ResolvedMetric& metric = output.metrics[i];
    ops.push_back({std::make_shared<Metric>(metric.rule, accumulate),
                   {metric.of_predictions ? end.predictions : end.logits, end.targets, shared.weights},
                   {end.metrics[i]},
                   output.prefixed(metric.name),
                   metric.place});
  }
  const bool scales = shared.loss_scale != no_tensor;
  std::vector<TensorId> results{end.loss};
  if (counts) results.push_back(shared.count);
  if (training) results.push_back(scales ? end.unscaled_gradient : end.loss_gradient);
  const auto scale = static_cast<float>(output.weight / static_cast<double>(output.rows_each));
  ops.push_back({std::make_shared<Loss>(output.loss.rule, training, accumulate, scale, counts),
                 {end.logits, end.targets, shared.weights},
                 std::move(results),
                 output.prefixed("loss"),
                 output.loss.place});
  if (scales) {
    ops.push_back({std::make_shared<Scale>(),
                   {end.unscaled_gradient, shared.loss_scale},
                   {end.loss_gradient},
                   output.prefixed("loss_scale"),
                   output.loss.place});
  }
  return ops;
}

std::vector<Op> zero_sums(const OutputEnd& end, const SharedSums& shared, bool counts, const Graph& graph) {
  std::vector<TensorId> sums{end.loss};
  sums.insert(sums.end(), end.metrics.begin(), end.metrics.end());
  if (counts) sums.push_back(shared.count);
  std::vector<Op> ops;
  for (TensorId sum : sums) {
    const Tensor& tensor = graph.tensor(sum);
    ops.push_back({std::make_shared<ZeroGradients>(tensor.type.shape.count()), {}, {sum}, tensor.name, {}});
  }
  return ops;
}

}  // namespace trainctl
