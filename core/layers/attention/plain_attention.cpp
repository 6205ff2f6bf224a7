// attention and additive_attention: Keras' Attention and AdditiveAttention, without heads and projections.

#include "core/base/format.h"
#include "core/base/random.h"
#include "core/base/table.h"
#include "core/graph/ops/additive_attention.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/masks.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/images.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {

enum class ScoreMode { dot, concat };

template <>
struct EnumNames<ScoreMode> {
  static constexpr EnumName<ScoreMode> names[] = {{ScoreMode::dot, "dot"}, {ScoreMode::concat, "concat"}};
};

namespace {

// The base of both layers: their inputs, masks and dropout.
struct PlainAttention : LayerOptions {
  std::vector<Reference> from;
  bool use_causal_mask = false;
  double dropout = 0;

  std::vector<Reference> references() const final { return from; }
  MaskUse mask_use() const final { return MaskUse::own; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const final {
    const Feature &query = inputs[0], &value = inputs[1], &key = inputs.back();
    for (const Feature& input : inputs) {
      if (!is_sequence(layer, input)) return {};
    }
    const Shape q = layer.shape(query), k = layer.shape(key), v = layer.shape(value);
    if (q[1] != k[1] || k[0] != v[0]) {
      return layer.error(
          format("query {}, value {} and key {} do not fit: query and key need vectors of one length, and "
                 "key and value the same positions",
                 to_string(q), to_string(v), to_string(k)),
          key);
    }
    AttentionAttributes attributes{.head_size = q[1], .value_size = v[1], .causal = use_causal_mask};
    attributes.mask = value.masked();
    std::vector<TensorId> conditions;
    if (value.masked()) conditions.push_back(value.mask);
    if (layer.training() && dropout > 0) {
      attributes.dropout = {static_cast<float>(dropout), layer.seed(), name_hash(layer.path()), {}};
      for (const TensorId id : layer.dropout_inputs()) conditions.push_back(id);
    }
    TensorId y = attend(layer, query, key, value.tensor, attributes, conditions);
    if (query.masked()) y = layer.op(std::make_shared<MaskPositions>(), {y, query.mask})[0];
    return layer.output(y, query.mask);
  }

 protected:
  // The mean of the values. `conditions` are the inputs of the op after q, k and v that belong to the attributes.
  virtual TensorId attend(Layer& layer, const Feature& query, const Feature& key, TensorId value,
                          const AttentionAttributes& attributes, const std::vector<TensorId>& conditions) const = 0;

  // The result of additive attention; `weights` is no_tensor if the tangents are added without weights.
  static TensorId add_tangents(Layer& layer, std::vector<TensorId> operands, const AttentionAttributes& attributes,
                               const std::vector<TensorId>& conditions, TensorId weights) {
    operands.insert(operands.end(), conditions.begin(), conditions.end());
    const bool weighted = weights != no_tensor;
    if (weighted) operands.push_back(weights);
    return layer.op(std::make_shared<AdditiveAttention>(attributes, weighted), operands, {"log_sum_exp"})[0];
  }
};

struct DotAttentionOptions final : PlainAttention {
  bool use_scale = false;
  ScoreMode score_mode = ScoreMode::dot;

 private:
  TensorId attend(Layer& layer, const Feature& query, const Feature& key, TensorId value,
                  const AttentionAttributes& attributes, const std::vector<TensorId>& conditions) const override {
    const bool adds = score_mode == ScoreMode::concat;
    std::vector<TensorId> operands{use_scale ? scaled(layer, query) : query.tensor,
                                   use_scale && adds ? scaled(layer, key) : key.tensor, value};
    if (adds) return add_tangents(layer, operands, attributes, conditions, number(layer, "concat_score_weight"));
    operands.insert(operands.end(), conditions.begin(), conditions.end());
    return layer.op(std::make_shared<Attention>(attributes), operands, {"log_sum_exp"})[0];
  }

  // A learned number as a parameter (1, 1).
  static TensorId number(Layer& layer, const std::string& name) {
    const InitializerChoice ones{"ones"};
    return layer.parameter(name, {1, 1}, make_initializer(ones, {1, 1}), false);
  }
  // The sequence times the parameter `scale`, as a product of vectors of one value with it.
  static TensorId scaled(Layer& layer, const Feature& sequence) {
    const Shape x = layer.shape(sequence);
    const TensorId apart = layer.op(std::make_shared<Reshape>(layer.batch_of({x.count(), 1})), {sequence.tensor})[0];
    const TensorId product = layer.op(std::make_shared<Dense>(), {apart, number(layer, "scale")})[0];
    return layer.op(std::make_shared<Reshape>(layer.batch_of(x)), {product})[0];
  }
};

struct AdditiveAttentionOptions final : PlainAttention {
  bool use_scale = true;

 private:
  TensorId attend(Layer& layer, const Feature& query, const Feature& key, TensorId value,
                  const AttentionAttributes& attributes, const std::vector<TensorId>& conditions) const override {
    TensorId weights = no_tensor;
    if (use_scale) {
      const Shape each{attributes.head_size};
      weights = layer.parameter("scale", each, make_initializer(InitializerChoice{"glorot_uniform"}, each), false);
    }
    return add_tangents(layer, {query.tensor, key.tensor, value}, attributes, conditions, weights);
  }
};

template <class O>
void check_operands(const O& options, const Node& node, Reader& reader) {
  if (options.from.size() == 2 || options.from.size() == 3) return;
  reader.error(node.find("from")->location,
               format("from names {}, but attention needs [query, value] or [query, value, key]",
                      counted(options.from.size(), "layer")));
}

// Adds the keys of a PlainAttention, which follow the keys of the layer itself.
template <class O>
Keys<O> plain_keys(Keys<O>&& keys) {
  return std::move(keys)
      .key("use_causal_mask", &O::use_causal_mask, "Whether a position attends to itself and earlier positions only.")
      .key("dropout", &O::dropout, "Share of attention weights that become zero in training.", from_zero_to_below(1))
      .check(check_operands<O>);
}

}  // namespace

Section attention() {
  using O = DotAttentionOptions;
  return plain_keys<O>(
      layer_keys<O>("attention",
                    "Attention without heads and projections; Luong et al. (2015). A position of the query gets the "
                    "mean of the values, weighted by the softmax of its scores with the keys.")
          .key("use_scale", &O::use_scale,
               "Whether the dot products, or the sums of query and key, are multiplied by a learned number, scale "
               "(1, 1).")
          .key("score_mode", &O::score_mode,
               "The score of a query and a key: dot for their dot product; concat for the sum of tanh(query + key), "
               "times a learned number, concat_score_weight (1, 1)."));
}

Section additive_attention() {
  using O = AdditiveAttentionOptions;
  return plain_keys<O>(
      layer_keys<O>("additive_attention",
                    "Attention without heads and projections, whose scores are sums of scale * tanh(query + key); "
                    "Bahdanau et al. (2015).")
          .key("use_scale", &O::use_scale,
               "Whether the tangents have learned weights, scale (length of a query's vectors)."));
}

}  // namespace trainctl
