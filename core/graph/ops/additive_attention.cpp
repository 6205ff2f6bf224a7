// Shapes, placements and gradients of additive attention.
#include "core/graph/ops/additive_attention.h"

#include "core/graph/ops/backward.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

constexpr std::size_t before_inputs = 2;  // dy and log_sum_exp, before the inputs of the op

std::string text_of(const AttentionAttributes& a, bool weighted, bool accumulate) {
  AttributeText text;
  text.flag("causal", a.causal).flag("mask", a.mask).flag("weighted", weighted);
  if (a.dropout.rate != 0) {
    text.value("dropout", a.dropout.rate).value("seed", a.dropout.seed).value("layer", a.dropout.layer);
  }
  return text.flag("accumulate", accumulate).text();
}

// The rule's texts of the op's inputs. Only samples can be split.
std::vector<std::string> input_rules(const AttentionAttributes& a, bool weighted, const TensorType& last) {
  std::vector<std::string> rules(3, "a..");
  if (a.mask) rules.emplace_back("a.");
  if (a.dropout.rate != 0) rules.insert(rules.end(), {"a", ""});
  if (weighted) rules.push_back(none_split(last));
  return rules;
}

// The operations of `tangents` tangents for each pair of positions and each value of a query, and of `products`
// products with the width of values.
double flops_of(std::span<const TensorType> inputs, double tangents, double products) {
  constexpr double flops_of_tangent = 10;
  const Shape &q = inputs[0].shape, &v = inputs[2].shape;
  const auto pairs = static_cast<double>(q[0] * q[1]) * static_cast<double>(v[1]);
  return pairs * (flops_of_tangent * tangents * static_cast<double>(q[2]) + 2 * products * static_cast<double>(v[2]));
}

}  // namespace

std::string AdditiveAttention::attributes() const { return text_of(a, weighted, false); }

std::vector<TensorType> AdditiveAttention::outputs(std::span<const TensorType> inputs) const {
  require(inputs.size() == AttentionInputs(a).count + (weighted ? 1 : 0) && inputs[0].shape.rank() == 3,
          "additive_attention: the inputs do not fit the attributes");
  const Shape &q = inputs[0].shape, &k = inputs[1].shape, &v = inputs[2].shape;
  require(q[2] == a.head_size && k == Shape{q[0], k[1], q[2]} && v == Shape{q[0], k[1], a.value_size},
          "additive_attention: q, k and v do not fit");
  require(!weighted || inputs.back().shape.count() == a.head_size || inputs.back().shape.count() == 1,
          "additive_attention: there is neither a weight for each value nor one for all");
  return {{{q[0], q[1], v[2]}, inputs[0].dtype}, {{q[0], q[1]}, DType::float32}};
}

OutputPlacements AdditiveAttention::placements(const PlacementQuery& query) const {
  return place_by({input_rules(a, weighted, query.input_types.back()), {"a..", "a."}}, query);
}

double AdditiveAttention::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return flops_of(inputs, 1, 1);
}

void AdditiveAttention::differentiate(const Op& op, Differentiator& differentiator) const {
  std::vector<TensorId> operands{differentiator.gradient_of(op.outputs[0]), op.outputs[1]};
  operands.insert(operands.end(), op.inputs.begin(), op.inputs.end());
  std::vector<TensorId> outputs(3, no_tensor);
  if (weighted) outputs.push_back(parameter_gradient_or_none(op.inputs.back(), differentiator));
  const auto gradients =
      differentiator.emit_into(std::make_shared<AdditiveAttentionGrad>(a, weighted, differentiator.accumulate()),
                               std::move(operands), std::move(outputs), op);
  for (std::size_t i = 0; i < 3; ++i) {
    if (differentiator.needs_gradient(op.inputs[i])) differentiator.contribute(op.inputs[i], gradients[i]);
  }
}

std::string AdditiveAttentionGrad::attributes() const { return text_of(a, weighted, accumulate); }

std::vector<TensorType> AdditiveAttentionGrad::outputs(std::span<const TensorType> inputs) const {
  std::vector<TensorType> types(inputs.begin() + before_inputs, inputs.begin() + before_inputs + 3);
  if (weighted) types.push_back(inputs.back());
  return types;
}

OutputPlacements AdditiveAttentionGrad::placements(const PlacementQuery& query) const {
  PlacementRule rule{{"a..+S", "a."}, {"a..+S", "a..+S", "a..+S"}};
  const auto inputs = input_rules(a, weighted, query.input_types.back());
  rule.inputs.insert(rule.inputs.end(), inputs.begin(), inputs.end());
  if (!weighted) return place_by(rule, query);
  rule.outputs.push_back(none_split(query.input_types.back()) + "+aS");
  OutputPlacements result = place_by(rule, query);
  return accumulate ? kept(std::move(result), query, 3, 4) : result;
}

double AdditiveAttentionGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return flops_of(inputs.subspan(before_inputs), 2, 2);
}

}  // namespace trainctl
