// multi_head_attention: scaled dot-product attention of several heads.
#pragma once

#include "core/layers/attention/attention_layer.h"

namespace trainctl {

struct MultiHeadAttentionOptions final : AttentionLayer {
  std::int64_t num_heads = 0;
  std::int64_t key_dim = 0;
  Auto<std::int64_t> value_dim;

  static Keys<MultiHeadAttentionOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return attend(layer, inputs, {num_heads, num_heads, key_dim, value_dim.or_else(key_dim)});
  }
};

}  // namespace trainctl
