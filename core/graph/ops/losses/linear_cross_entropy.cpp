// Shapes, placements and gradient of the product with a cross-entropy.
#include "core/graph/ops/losses/linear_cross_entropy.h"

#include <algorithm>
#include <memory>

#include "core/base/checked.h"
#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/ops/losses/losses.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

constexpr std::int64_t chunk_bytes = std::int64_t{64} << 20, min_chunk_rows = 256;

std::int64_t classes_of(const LinearCrossEntropy& def, const TensorType& kernel) {
  return kernel.shape[def.transposed ? 0 : 1];
}

}  // namespace

std::int64_t chunk_rows(std::int64_t rows, std::int64_t classes, DType dtype) {
  const std::int64_t most = std::max(chunk_bytes / (classes * size_of(dtype)), min_chunk_rows);
  return round_up(divide_up(rows, divide_up(rows, most)), 16);
}

std::string LinearCrossEntropy::attributes() const {
  AttributeText text;
  text.rule(rule).flag("transposed", transposed).flag("bias", has_bias);
  if (scale != 1) text.value("scale", scale);
  return text.flag("training", training).flag("accumulate", accumulate).text();
}

std::vector<TensorType> LinearCrossEntropy::outputs(std::span<const TensorType> inputs) const {
  const TensorType &x = inputs[0], &kernel = inputs[1];
  require(kernel.shape.rank() == 2 && kernel.shape[transposed ? 1 : 0] == x.shape.back(),
          "linear_cross_entropy: x and kernel do not fit");
  std::vector<TensorType> types{{x.shape.with_back(class_sums), DType::float32}};
  if (!training) return types;
  types.push_back(x);
  types.push_back({kernel.shape, DType::float32});
  if (has_bias) types.push_back({{classes_of(*this, kernel)}, DType::float32});
  return types;
}

OutputPlacements LinearCrossEntropy::placements(const PlacementQuery& query) const {
  const std::string row = rows(query.input_types[0]);
  PlacementRule rule{{row + ".", ".."}, {row + "."}};
  if (has_bias) rule.inputs.emplace_back(".");
  rule.inputs.push_back(row);
  if (query.input_types.size() > weights()) {
    rule.inputs.push_back(row.substr(0, static_cast<std::size_t>(query.input_types[weights()].shape.rank())));
  }
  if (training) {
    rule.outputs.push_back(row + ".");
    rule.outputs.push_back("..+" + row);
    if (has_bias) rule.outputs.push_back(".+" + row);
  }
  OutputPlacements result = place_by(rule, query);
  return accumulate ? kept(std::move(result), query, 2, rule.outputs.size()) : result;
}

double LinearCrossEntropy::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  const auto product = 2.0 * static_cast<double>(inputs[0].shape.rows()) * static_cast<double>(inputs[1].shape.count());
  return (training ? 3 : 1) * product;
}

void LinearCrossEntropy::differentiate(const Op& op, Differentiator& differentiator) const {
  auto def = std::make_shared<LinearCrossEntropy>(*this);
  def->training = true;
  def->accumulate = differentiator.accumulate();
  std::vector<TensorId> outputs{op.outputs[0], no_tensor, differentiator.parameter_gradient(op.inputs[1])};
  if (has_bias) outputs.push_back(differentiator.parameter_gradient(op.inputs[2]));
  const TensorId dx = differentiator.emit_into(std::move(def), op.inputs, std::move(outputs), op)[1];
  if (differentiator.needs_gradient(op.inputs[0])) differentiator.contribute(op.inputs[0], dx);
}

}  // namespace trainctl
