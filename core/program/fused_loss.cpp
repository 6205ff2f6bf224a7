// Fuses the last product of an output with its loss.
#include "core/program/fused_loss.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "core/graph/ops/dense.h"
#include "core/graph/ops/losses/linear_cross_entropy.h"
#include "core/graph/ops/losses/losses.h"

namespace trainctl {
namespace {

constexpr std::int64_t min_classes = 8192, min_bytes = std::int64_t{4} << 20;  // of the logits of a sample

std::vector<Op>::const_iterator writer_of(const std::vector<Op>& ops, TensorId tensor) {
  return std::ranges::find_if(ops,
                              [&](const Op& op) { return std::ranges::find(op.outputs, tensor) != op.outputs.end(); });
}

bool is_plain_product(const Op& op) {
  const auto* dense = op.get_if<Dense>();
  const auto* transposed = op.get_if<DenseGradInput>();
  return (dense != nullptr && dense->function.kind == ActivationKind::none) ||
         (transposed != nullptr && transposed->function.kind == ActivationKind::none && !transposed->accumulate);
}

bool trains(const Graph& graph, TensorId parameter) {
  return std::ranges::any_of(graph.parameters,
                             [&](const GraphParameter& of) { return of.tensor == parameter && of.trainable; });
}

bool is_read(const Graph& graph, TensorId tensor) {
  const auto reads = [&](const Op& op) { return std::ranges::find(op.inputs, tensor) != op.inputs.end(); };
  return std::ranges::any_of(graph.ops, reads) || std::ranges::count(graph.outputs, tensor) != 1;
}

}  // namespace

bool fuses_loss(const Graph& graph, TensorId logits, const ResolvedOutput& output) {
  const TensorType& type = graph.tensor(logits).type;
  if (type.dtype == DType::float16 || type.shape.rank() < 3 || type.shape.back() < min_classes ||
      type.bytes() / type.shape[0] < min_bytes)
    return false;
  const auto is_accuracy = [](const ResolvedMetric& metric) { return std::holds_alternative<Accuracy>(metric.rule); };
  if (!std::holds_alternative<SparseCategoricalCrossentropy>(output.loss.rule) ||
      output.target_encoding != TargetEncoding::class_number || !std::ranges::all_of(output.metrics, is_accuracy) ||
      output.smooths_targets() || is_read(graph, logits)) {
    return false;
  }
  const auto op = writer_of(graph.ops, logits);
  return op != graph.ops.end() && is_plain_product(*op) && graph.tensor(op->inputs[1]).type.shape.rank() == 2 &&
         std::all_of(op->inputs.begin() + 1, op->inputs.end(), [&](TensorId id) { return trains(graph, id); });
}

TensorId fuse_loss(Graph& graph, TensorId logits, const ResolvedOutput& output, TensorId targets, TensorId weights) {
  const auto op = graph.ops.begin() + std::distance(graph.ops.cbegin(), writer_of(graph.ops, logits));
  auto def = std::make_shared<LinearCrossEntropy>();
  def->rule = std::get<SparseCategoricalCrossentropy>(output.loss.rule);
  def->transposed = op->get_if<DenseGradInput>() != nullptr;
  def->has_bias = op->inputs.size() > 2;
  def->scale = output.gradient_scale();
  op->def = def;
  op->inputs.push_back(targets);
  if (graph.training) op->inputs.push_back(weights);
  Tensor sums = graph.tensor(logits);
  sums.name = output.prefixed("class_sums");
  sums.type = def->outputs(types_of(op->inputs, graph.tensors))[0];
  op->outputs = {graph.add_tensor(std::move(sums))};
  std::ranges::replace(graph.outputs, logits, op->outputs[0]);
  return op->outputs[0];
}

std::vector<Op> without_fused_losses(const std::vector<Op>& ops) {
  std::vector<Op> kept;
  std::ranges::copy_if(ops, std::back_inserter(kept),
                       [](const Op& op) { return op.get_if<LinearCrossEntropy>() == nullptr; });
  return kept;
}

}  // namespace trainctl
