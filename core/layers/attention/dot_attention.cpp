// attention: Keras' Attention, dot products without heads and projections.

#include "core/base/format.h"
#include "core/base/random.h"
#include "core/graph/ops/attention.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/masks.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/images.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct DotAttentionOptions final : LayerOptions {
  std::vector<Reference> from;
  bool use_scale = false;
  bool use_causal_mask = false;
  double dropout = 0;

  std::vector<Reference> references() const override { return from; }
  MaskUse mask_use() const override { return MaskUse::own; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
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
    std::vector<TensorId> operands{use_scale ? scaled(layer, query) : query.tensor, key.tensor, value.tensor};
    if (value.masked()) operands.push_back(value.mask);
    if (layer.training() && dropout > 0) {
      attributes.dropout = {static_cast<float>(dropout), layer.seed(), name_hash(layer.path()), {}};
      for (const TensorId id : layer.dropout_inputs()) operands.push_back(id);
    }
    TensorId y = layer.op(std::make_shared<Attention>(attributes), operands, {"log_sum_exp"})[0];
    if (query.masked()) y = layer.op(std::make_shared<MaskPositions>(), {y, query.mask})[0];
    return layer.output(y, query.mask);
  }

 private:
  // The query times the parameter `scale` (1, 1), as a product of vectors of one value with it.
  static TensorId scaled(Layer& layer, const Feature& query) {
    const Shape x = layer.shape(query);
    const InitializerChoice ones{"ones"};
    const TensorId scale = layer.parameter("scale", {1, 1}, make_initializer(ones, {1, 1}), false);
    const TensorId apart = layer.op(std::make_shared<Reshape>(layer.batch_of({x.count(), 1})), {query.tensor})[0];
    const TensorId product = layer.op(std::make_shared<Dense>(), {apart, scale})[0];
    return layer.op(std::make_shared<Reshape>(layer.batch_of(x)), {product})[0];
  }
};

void check_operands(const DotAttentionOptions& options, const Node& node, Reader& reader) {
  if (options.from.size() == 2 || options.from.size() == 3) return;
  reader.error(
      node.find("from")->location,
      format("from names {} layers, but attention needs [query, value] or [query, value, key]", options.from.size()));
}

}  // namespace

Section attention() {
  using O = DotAttentionOptions;
  return layer_keys<O>("attention",
                       "Dot-product attention without heads and projections; Luong et al. (2015). A position of the "
                       "query gets the mean of the values, weighted by the softmax of its dot products with the keys.")
      .key("use_scale", &O::use_scale, "Whether the dot products are multiplied by a learned number, scale (1, 1).")
      .key("use_causal_mask", &O::use_causal_mask, "Whether a position attends to itself and earlier positions only.")
      .key("dropout", &O::dropout, "Share of attention weights that become zero in training.", from_zero_to_below(1))
      .check(check_operands);
}

}  // namespace trainctl
