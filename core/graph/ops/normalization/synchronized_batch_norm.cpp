// Shapes, placements and gradients of batch normalisation with the statistics of all ranks.
#include "core/graph/ops/normalization/synchronized_batch_norm.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/normalization/batch_norm_fusion.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

TensorType channel_vector(const TensorType& x) { return {{x.shape.back()}, DType::float32}; }
TensorType rows_per_channel(std::int64_t rows, const TensorType& x) { return {{rows, x.shape.back()}, DType::float32}; }

}  // namespace

std::string BatchMoments::attributes() const { return AttributeText().flag("masked", masked).text(); }

std::vector<TensorType> BatchMoments::outputs(std::span<const TensorType> inputs) const {
  require(inputs.size() == std::size_t{2} + masked, "batch_moments: wrong number of inputs");
  require(!masked || inputs[2] == padding_mask_of(inputs[0]), "batch_moments: the padding mask does not fit x");
  return {rows_per_channel(moment_rows, inputs[0])};
}

OutputPlacements BatchMoments::placements(const PlacementQuery& query) const {
  PlacementRule rule{{samples_and_channels(query.input_types[0]), samples(query.input_types[1])}, {".c|a"}};
  if (masked) rule.inputs.push_back(samples(query.input_types[2]));
  return place_by(rule, query);
}

double BatchMoments::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 4 * static_cast<double>(inputs[0].shape.count());  // for each element: mean 1, squares 3
}

std::vector<TensorType> MergeMoments::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape[0] % moment_rows == 0, "merge_moments: the number of rows is not a multiple of moment_rows");
  return {channel_vector(inputs[0]), channel_vector(inputs[0]), {{}, DType::float32}};
}

OutputPlacements MergeMoments::placements(const PlacementQuery& query) const {
  return place_by({{".c", ".c|a"}, {"c", "c", "|a"}}, query);
}

std::string SynchronizedBatchNorm::attributes() const {
  return BatchNorm(a).attributes() + format(" {} ranks={}", name_of(axis), ranks);
}

std::vector<TensorType> SynchronizedBatchNorm::outputs(std::span<const TensorType> inputs) const {
  require(inputs.size() == std::size_t{4} + a.scale + a.center + a.masked + a.residual,
          "synchronized_batch_norm: wrong number of inputs");
  std::vector<TensorType> types{inputs[0]};
  if (a.masks_by_bits(inputs[0].shape.back())) types.push_back(batch_norm_mask(inputs[0]));
  return types;
}

OutputPlacements SynchronizedBatchNorm::placements(const PlacementQuery& query) const {
  const std::string x = samples_and_channels(query.input_types[0]);
  PlacementRule rule{{x}, std::vector<std::string>(query.output_types.size(), x)};
  rule.inputs.resize(std::size_t{1} + a.scale + a.center, "c");
  if (a.masked) rule.inputs.push_back(samples(padding_mask_of(query.input_types[0])));
  rule.inputs.insert(rule.inputs.end(), {"c", "c", "|a"});
  if (a.residual) rule.inputs.push_back(x);
  return place_by(rule, query);
}

double SynchronizedBatchNorm::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  // For each element: scale and shift 2, and 1 for each fused op.
  return static_cast<double>(inputs[0].shape.count()) * (2 + a.residual + a.relu);
}

std::optional<Op> SynchronizedBatchNorm::fused_with(const Op& op, const Op& reader, std::size_t operand) const {
  return fused_batch_norm(*this, op, reader, operand);
}

void SynchronizedBatchNorm::differentiate(const Op& op, Differentiator& differentiator) const {
  std::size_t next = 1;
  const TensorId x = op.inputs[0], dy = differentiator.gradient_of(op.outputs[0]);
  std::vector<TensorId> given{dy, x}, factors, sums{no_tensor};
  const std::int64_t channels = differentiator.tensor(x).type.shape.back();
  if (a.masks_by_bits(channels)) given.push_back(op.outputs[1]);
  if (a.masks_by_y(channels)) given.push_back(op.outputs[0]);
  if (a.scale) {
    factors.push_back(op.inputs[next]);
    sums.push_back(parameter_gradient_or_none(op.inputs[next++], differentiator));
  }
  if (a.center) {
    if (a.masks_by_x()) factors.push_back(op.inputs[next]);
    sums.push_back(parameter_gradient_or_none(op.inputs[next++], differentiator));
  }
  if (a.residual) sums.push_back(no_tensor);
  const TensorId padding = a.masked ? op.inputs[next++] : no_tensor;
  factors.insert(factors.end(), {op.inputs[next], op.inputs[next + 1]});  // mean, variance
  const TensorId share = op.inputs[next + 2];

  given.insert(given.end(), factors.begin(), factors.end());
  const bool add = differentiator.accumulate();
  BatchNormAttributes over_all = a;  // the sums are over all positions
  over_all.masked = false;
  const auto made =
      differentiator.emit_into(std::make_shared<SynchronizedBatchNormSums>(over_all, add), given, sums, op);
  const TensorId residual = a.residual ? op.inputs[next + 3] : no_tensor;
  if (differentiator.needs_gradient(x)) {
    TensorId all = made[0];
    if (ranks > 1) all = differentiator.emit(std::make_shared<AllReduce>(axis), {all}, op)[0];
    std::vector<TensorId> inputs{a.residual ? made.back() : dy, x};
    inputs.insert(inputs.end(), factors.begin(), factors.end());
    inputs.insert(inputs.end(), {share, all});
    if (a.masked) inputs.push_back(padding);
    differentiator.contribute(
        x, differentiator.emit(std::make_shared<SynchronizedBatchNormGrad>(a), std::move(inputs), op)[0]);
  }
  if (a.residual && differentiator.needs_gradient(residual)) differentiator.contribute(residual, made.back());
}

std::string SynchronizedBatchNormSums::attributes() const { return BatchNormGrad(a, accumulate).attributes(); }

std::vector<TensorType> SynchronizedBatchNormSums::outputs(std::span<const TensorType> inputs) const {
  require(!a.masked, "synchronized_batch_norm_sums: the sums are over all positions, and read no padding mask");
  std::vector<TensorType> types = BatchNormGrad(a, accumulate).outputs(inputs);
  types[0] = rows_per_channel(2, inputs[1]);
  return types;
}

OutputPlacements SynchronizedBatchNormSums::placements(const PlacementQuery& query) const {
  const std::string x = samples_and_channels(query.input_types[1]), dx = x + "+S";
  const std::int64_t channels = query.input_types[1].shape.back();
  const std::size_t sums = std::size_t{0} + a.scale + a.center;
  PlacementRule rule{{dx, x}, {".c+aS"}};
  if (a.masks_by_bits(channels) || a.masks_by_y(channels)) rule.inputs.push_back(x);
  rule.inputs.insert(rule.inputs.end(), std::size_t{2} + a.scale + (a.center && a.masks_by_x()), "c");
  rule.outputs.insert(rule.outputs.end(), sums, "c+aS");
  if (a.residual) rule.outputs.push_back(dx);
  OutputPlacements result = place_by(rule, query);
  return accumulate ? kept(std::move(result), query, 1, 1 + sums) : result;
}

std::string SynchronizedBatchNormGrad::attributes() const { return BatchNorm(a).attributes(); }

OutputPlacements SynchronizedBatchNormGrad::placements(const PlacementQuery& query) const {
  const std::string x = samples_and_channels(query.input_types[1]), dx = x + "+S";
  PlacementRule rule{{dx, x}, {dx}};
  rule.inputs.insert(rule.inputs.end(), std::size_t{2} + a.scale + (a.center && a.masks_by_x()), "c");
  rule.inputs.insert(rule.inputs.end(), {"|a", ".c+S"});
  if (a.masked) rule.inputs.push_back(samples(padding_mask_of(query.input_types[1])));
  return place_by(rule, query);
}

}  // namespace trainctl
