// Shapes, placements and gradients of attention.
#include "core/graph/ops/attention.h"

#include <algorithm>

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

constexpr std::size_t gradient_operands = 3;  // dy, y and log_sum_exp, before the inputs of the op

std::size_t operands_of(const AttentionAttributes& a) { return a.packed != 0 ? 1 : 3; }

std::string text_of(const AttentionAttributes& a) {
  AttributeText text;
  text.value("head_size", a.head_size);
  if (a.value_size != a.head_size) text.value("value_size", a.value_size);
  if (a.packed != 0) text.value("packed", a.packed);
  text.value("scale", a.scale).flag("causal", a.causal);
  if (a.window != 0) text.value("window", a.window);
  text.flag("mask", a.mask).flag("documents", a.documents).flag("starts", a.starts);
  if (a.dropout.rate != 0) {
    text.value("dropout", a.dropout.rate).value("seed", a.dropout.seed).value("layer", a.dropout.layer);
    if (a.dropout.heads) text.word(to_string(*a.dropout.heads));
  }
  return text.text();
}

// The number of pairs (query, key) of a head and sample that the order of positions allows.
double visible_pairs(const AttentionAttributes& a, const AttentionSizes& sizes) {
  if (a.starts) return static_cast<double>(sizes.queries * sizes.keys);
  double pairs = 0;
  for (std::int64_t t = 0; t < sizes.queries; ++t) {
    const std::int64_t first = a.window != 0 ? std::max<std::int64_t>(0, t - a.window + 1) : 0;
    const std::int64_t after = a.window != 0 ? t + a.window : sizes.keys;
    const std::int64_t end = std::min({sizes.keys, after, a.causal ? t + 1 : sizes.keys});
    pairs += static_cast<double>(std::max<std::int64_t>(0, end - first));
  }
  return pairs;
}

// The operations of `products` products of matrices with the width of queries and `value_products` with that of values.
double flops_of(const AttentionAttributes& a, std::span<const TensorType> inputs, int products, int value_products) {
  const AttentionSizes sizes(a, inputs);
  const double width = static_cast<double>(products * a.head_size + value_products * a.value_size);
  return 2.0 * static_cast<double>(sizes.samples * sizes.heads) * visible_pairs(a, sizes) * width;
}

// The rule's text for q, k, v or the packed input; `suffix` is appended to each. Dropout needs to know which heads a
// shard has.
std::vector<std::string> operand_rules(const AttentionAttributes& a, const PlacementQuery& query, std::size_t first,
                                       const std::string& suffix) {
  const bool heads_known = a.dropout.rate == 0 || a.dropout.heads;
  const std::int64_t key_columns = query.input_types[first + (a.packed != 0 ? 0 : 1)].shape.back();
  const std::int64_t width = a.head_size * (a.packed != 0 ? a.packed + 2 : 1);
  const std::string operand = heads_known && key_columns % width == 0 ? "a.h" : "a..";
  return std::vector<std::string>(operands_of(a), operand + suffix);
}

void add_further(const AttentionAttributes& a, std::vector<std::string>& rules) {
  if (a.mask) rules.emplace_back("a.");
  if (a.documents) rules.emplace_back("a.");
  if (a.starts) rules.emplace_back("a");
  if (a.dropout.rate != 0) rules.insert(rules.end(), {"a", ""});
}

}  // namespace

AttentionSizes::AttentionSizes(const AttentionAttributes& a, std::span<const TensorType> types) {
  const Shape& q = types[0].shape;
  samples = q[0];
  queries = q[1];
  keys = a.packed != 0 ? queries : types[1].shape[1];
  key_heads = a.packed != 0 ? q[2] / ((a.packed + 2) * a.head_size) : types[1].shape[2] / a.head_size;
  heads = a.packed != 0 ? key_heads * a.packed : q[2] / a.head_size;
}

AttentionInputs::AttentionInputs(const AttentionAttributes& a) : count(operands_of(a)) {
  if (a.mask) mask = count++;
  if (a.documents) documents = count++;
  if (a.starts) starts = count++;
  if (a.dropout.rate == 0) return;
  samples = count++;
  step = count++;
}

std::string Attention::attributes() const { return text_of(a); }

std::vector<TensorType> Attention::outputs(std::span<const TensorType> inputs) const {
  require(inputs.size() == AttentionInputs(a).count && inputs[0].shape.rank() == 3,
          "attention: the inputs do not fit the attributes");
  const AttentionSizes sizes(a, inputs);
  require(sizes.key_heads > 0 && sizes.heads % sizes.key_heads == 0 &&
              (a.packed != 0 ? a.value_size == a.head_size
                             : inputs[2].shape == Shape{sizes.samples, sizes.keys, sizes.key_heads * a.value_size}),
          "attention: q, k and v do not fit");
  require(!a.documents || sizes.queries == sizes.keys, "attention: documents of queries and keys differ");
  return {{{sizes.samples, sizes.queries, sizes.heads * a.value_size}, inputs[0].dtype},
          {{sizes.samples, sizes.heads, sizes.queries}, DType::float32}};
}

OutputPlacements Attention::placements(const PlacementQuery& query) const {
  PlacementRule rule{operand_rules(a, query, 0, ""), {}};
  const std::string y = rule.inputs[0];
  add_further(a, rule.inputs);
  rule.outputs = {y, y == "a.h" ? "ah." : "a.."};
  return place_by(rule, query);
}

std::shared_ptr<const OpDef> Attention::on_shard(std::span<const TensorType> inputs,
                                                 std::span<const std::optional<int>> split,
                                                 const ShardPosition& ranks) const {
  if (a.dropout.rate == 0 || split[0] != 2) return nullptr;
  const std::int64_t heads = AttentionSizes(a, inputs).heads;
  AttentionAttributes shard = a;
  shard.dropout.heads = ColumnRange{heads / ranks.count * ranks.index, heads};
  return std::make_shared<Attention>(std::move(shard));
}

double Attention::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return flops_of(a, inputs, 1, 1);
}

void Attention::differentiate(const Op& op, Differentiator& differentiator) const {
  require(!a.starts, "attention: with a cache of keys it has no gradient");
  std::vector<TensorId> operands{differentiator.gradient_of(op.outputs[0]), op.outputs[0], op.outputs[1]};
  operands.insert(operands.end(), op.inputs.begin(), op.inputs.end());
  const auto gradients = differentiator.emit(std::make_shared<AttentionGrad>(a), std::move(operands), op);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (differentiator.needs_gradient(op.inputs[i])) differentiator.contribute(op.inputs[i], gradients[i]);
  }
}

std::string AttentionGrad::attributes() const { return text_of(a); }

std::vector<TensorType> AttentionGrad::outputs(std::span<const TensorType> inputs) const {
  const auto first = inputs.begin() + gradient_operands;
  return {first, first + static_cast<std::ptrdiff_t>(operands_of(a))};
}

OutputPlacements AttentionGrad::placements(const PlacementQuery& query) const {
  const std::vector<std::string> operands = operand_rules(a, query, gradient_operands, "");
  const bool by_heads = operands[0] == "a.h";
  PlacementRule rule{{operands[0] + "+S", operands[0], by_heads ? "ah." : "a.."},
                     operand_rules(a, query, gradient_operands, "+S")};
  rule.inputs.insert(rule.inputs.end(), operands.begin(), operands.end());
  add_further(a, rule.inputs);
  return place_by(rule, query);
}

// Three products of the width of queries: the scores again, and the gradients of q and k.
double AttentionGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return flops_of(a, inputs.subspan(gradient_operands), 3, 2);
}

std::vector<InPlace> AttentionGrad::in_place() const {
  std::vector<InPlace> places;
  for (int i = 0; i < static_cast<int>(operands_of(a)); ++i) {
    places.push_back({static_cast<int>(gradient_operands) + i, i});
  }
  return places;
}

}  // namespace trainctl
