// The keys of multi_head_attention, and group_query_attention: scaled dot-product attention of several heads.
#include "core/layers/attention/multi_head_attention.h"

#include "core/layers/table.h"

namespace trainctl {
namespace {

struct GroupQueryAttentionOptions final : AttentionLayer {
  std::int64_t head_dim = 0;
  std::int64_t num_query_heads = 0;
  std::int64_t num_key_value_heads = 0;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return attend(layer, inputs, {num_query_heads, num_key_value_heads, head_dim, head_dim});
  }
};

}  // namespace

Keys<MultiHeadAttentionOptions> MultiHeadAttentionOptions::keys() {
  using O = MultiHeadAttentionOptions;
  return attention_keys<O>(
      named_layer_keys<O>(
          "multi_head_attention",
          "Attention of several heads by scaled dot products over sequences (positions, features); "
          "Vaswani et al. (2017). Its kernels query, key and value are (features, num_heads * key_dim), "
          "attention_output is (num_heads * value_dim, outputs).")
          .required("num_heads", &O::num_heads, "Number of heads.", between(1, max_heads))
          .required("key_dim", &O::key_dim, "Number of columns of a head's queries and keys.", between(1, max_channels))
          .key("value_dim", &O::value_dim, "Number of columns of a head's values; auto: key_dim.",
               between(1, max_channels)));
}

Section group_query_attention() {
  using O = GroupQueryAttentionOptions;
  return attention_keys<O>(
      named_layer_keys<O>("group_query_attention",
                          "Attention in which several heads of queries share a head of keys and values; Ainslie et al. "
                          "(2023). With one head of keys and values it is multi-query attention.")
          .required("head_dim", &O::head_dim, "Number of columns of a head.", between(1, max_channels))
          .required("num_query_heads", &O::num_query_heads, "Number of heads of queries.", between(1, max_heads))
          .required("num_key_value_heads", &O::num_key_value_heads,
                    "Number of heads of keys and values, a divisor of num_query_heads.", between(1, max_heads)));
}

}  // namespace trainctl
