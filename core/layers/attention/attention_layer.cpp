// Expands attention layers.
#include "core/layers/attention/attention_layer.h"

#include <cmath>

#include "core/base/format.h"
#include "core/base/random.h"
#include "core/base/table.h"
#include "core/graph/ops/attention.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/masks.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/images.h"

namespace trainctl {

Keys<HeadRotation> HeadRotation::keys() {
  return rotary_keys(Keys<HeadRotation>("rotary_embedding", "The rotation of queries and keys by their positions."));
}

std::vector<Reference> AttentionLayer::references() const {
  std::vector<Reference> all = from.items;
  if (!reads_documents()) return all;
  // A layer with several inputs must name all of them, also the layer before it.
  all.push_back(*documents);
  return all;
}

std::array<Feature, 3> AttentionLayer::operands(Layer& layer, const std::vector<Feature>& inputs) const {
  const std::size_t count = inputs.size() - (reads_documents() ? 1 : 0);
  if (count == 0) {
    return {layer.error("`documents` needs `from`, with the name of the layer whose output is the query", inputs[0])};
  }
  if (count > 3) {
    return {layer.error(format("from names {}, but query, value and key are at most three", counted(count, "layer")),
                        inputs[0])};
  }
  const std::array<Feature, 3> operands{inputs[0], inputs[count > 1 ? 1 : 0], inputs[count - 1]};
  for (const Feature& operand : operands) {
    if (!is_sequence(layer, operand)) return {};
  }
  const std::int64_t keys = layer.shape(operands[2])[0], values = layer.shape(operands[1])[0];
  if (keys != values) {
    return {layer.error(format("the key has {}, and the value {}", counted(keys, "position"), grouped(values)),
                        operands[2])};
  }
  return operands;
}

TensorId AttentionLayer::project(Layer& layer, const std::string& name, TensorId x, std::int64_t columns,
                                 const Shape& shape) const {
  const std::int64_t inputs = shape.count() / columns;
  std::vector<TensorId> ids{
      x, layer.parameter(name + "/kernel", {inputs, columns}, make_initializer(kernel_initializer, shape), true,
                         penalty_of(kernel_regularizer))};
  if (use_bias) {
    ids.push_back(layer.parameter(name + "/bias", {columns}, make_initializer(bias_initializer, {columns}), false,
                                  penalty_of(bias_regularizer)));
  }
  return layer.op(std::make_shared<Dense>(), ids)[0];
}

TensorId AttentionLayer::prepare(Layer& layer, const std::string& name, TensorId x, std::int64_t heads,
                                 std::int64_t size, TensorId numbers) const {
  if (query_key_norm) {
    const Shape whole = layer.shape(layer.output(x)), apart{whole[0], heads, size};
    const InitializerChoice ones{"ones"};
    const TensorId scale = layer.parameter(name + "_norm/scale", {size}, make_initializer(ones, {size}), false);
    const LayerNormAttributes attributes{{.epsilon = static_cast<float>(*query_key_norm), .center = false}, false};
    x = layer.op(std::make_shared<Reshape>(layer.batch_of(apart)), {x})[0];
    x = layer.op(std::make_shared<LayerNorm>(attributes), {x, scale}, {"mean", "rstd"})[0];
    x = layer.op(std::make_shared<Reshape>(layer.batch_of(whole)), {x})[0];
  }
  return rotary_embedding ? rotate_heads(layer, *rotary_embedding, layer.output(x), heads, numbers) : x;
}

TensorId AttentionLayer::key_mask(Layer& layer, const Feature& value, const Feature& key) {
  if (!value.masked() || !key.masked() || value.mask == key.mask) return value.masked() ? value.mask : key.mask;
  return layer.op(std::make_shared<MergeMasks>(true), {value.mask, key.mask})[0];
}

Feature AttentionLayer::attend(Layer& layer, const std::vector<Feature>& inputs, const HeadSizes& sizes) const {
  if (sizes.heads % sizes.key_heads != 0) {
    return layer.error(format("{} heads of queries cannot share {} heads of keys: the one number must divide the other",
                              sizes.heads, sizes.key_heads),
                       inputs[0]);
  }
  const auto [query, value, key] = operands(layer, inputs);
  if (!query.known()) return {};
  TensorId numbers = no_tensor;
  if (reads_documents()) {
    numbers = inputs.back().tensor;
    const Shape shape = layer.shape(inputs.back()), positions{layer.shape(query)[0]};
    if (layer.type(inputs.back()).dtype != DType::int32 || shape != positions || layer.shape(key)[0] != positions[0]) {
      return layer.error(format("documents {} are not whole numbers for the {} positions of query and key",
                                to_string(shape), positions[0]),
                         inputs.back());
    }
  }
  const std::int64_t query_features = layer.shape(query).back();
  const auto heads = [&](const char* name, const Feature& feature, std::int64_t count, std::int64_t size) {
    const std::int64_t features = layer.shape(feature).back();
    return project(layer, name, feature.tensor, checked_multiply(count, size), {features, count, size});
  };
  std::vector<TensorId> operands{heads("query", query, sizes.heads, sizes.head_size),
                                 heads("key", key, sizes.key_heads, sizes.head_size),
                                 heads("value", value, sizes.key_heads, sizes.value_size)};
  operands[0] = prepare(layer, "query", operands[0], sizes.heads, sizes.head_size, numbers);
  if (operands[0] == no_tensor) return {};
  operands[1] = prepare(layer, "key", operands[1], sizes.key_heads, sizes.head_size, numbers);
  AttentionAttributes attributes{.head_size = sizes.head_size,
                                 .value_size = sizes.value_size,
                                 .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(sizes.head_size))),
                                 .causal = use_causal_mask,
                                 .window = sliding_window,
                                 .mask = value.masked() || key.masked(),
                                 .documents = reads_documents()};
  if (attributes.mask) operands.push_back(key_mask(layer, value, key));
  if (numbers != no_tensor) operands.push_back(numbers);
  if (layer.training() && dropout > 0) {
    attributes.dropout = {static_cast<float>(dropout), layer.seed(), name_hash(layer.path()), {}};
    for (const TensorId id : layer.dropout_inputs()) operands.push_back(id);
  }
  const TensorId y = layer.op(std::make_shared<Attention>(attributes), operands, {"log_sum_exp"})[0];
  const std::int64_t outputs = output_shape.or_else(query_features);
  const TensorId result = project(layer, "attention_output", y, outputs, {sizes.heads, sizes.value_size, outputs});
  return layer.output(result, query.mask);
}

}  // namespace trainctl
