// The op cases of attention (test/golden/attention.py).
#include "core/graph/ops/additive_attention.h"

#include <cmath>

#include "test/core/ops/op_cases.h"

namespace trainctl::test {
namespace {

OpCase attention(const std::string& name, const std::string& inputs, AttentionAttributes attributes) {
  if (attributes.value_size == 1) attributes.value_size = attributes.head_size;
  attributes.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attributes.head_size)));
  return {"attention_" + name, inputs, [=](Graph& graph, const std::vector<TensorId>& ids) {
            const auto def = std::make_shared<Attention>(attributes);
            const TensorId y = graph.add_op(def, ids, "attention", {}, {"output", "log_sum_exp"})[0];
            return std::vector<TensorId>{graph.outputs[0] = y};
          }};
}

OpCase additive(const std::string& name, const std::string& inputs, const AttentionAttributes& attributes) {
  const bool weighted = inputs.ends_with('p');
  return {"additive_attention" + name, inputs, [=](Graph& graph, const std::vector<TensorId>& ids) {
            const auto def = std::make_shared<AdditiveAttention>(attributes, weighted);
            const TensorId y = graph.add_op(def, ids, "attention", {}, {"output", "log_sum_exp"})[0];
            return std::vector<TensorId>{graph.outputs[0] = y};
          }};
}

}  // namespace

void add_attention(std::vector<OpCase>& cases) {
  cases.push_back(attention("plain", "xxx", {.head_size = 6}));
  cases.push_back(attention("causal", "xxx", {.head_size = 6, .causal = true}));
  cases.push_back(attention("grouped", "xxx", {.head_size = 6, .causal = true}));
  cases.push_back(attention("one_key_head", "xxx", {.head_size = 8}));
  cases.push_back(attention("window", "xxx", {.head_size = 6, .window = 3}));
  cases.push_back(attention("causal_window", "xxx", {.head_size = 6, .causal = true, .window = 4}));
  cases.push_back(attention("mask", "xxxc", {.head_size = 6, .mask = true}));
  cases.push_back(attention("causal_mask", "xxxc", {.head_size = 6, .causal = true, .mask = true}));
  cases.push_back(attention("documents", "xxxc", {.head_size = 6, .causal = true, .documents = true}));
  cases.push_back(attention("packed", "x", {.head_size = 6, .packed = 1, .causal = true}));
  cases.push_back(attention("packed_grouped", "x", {.head_size = 6, .packed = 2}));
  cases.push_back(attention("wide_values", "xxx", {.head_size = 6, .value_size = 10}));
  cases.push_back(additive("", "xxx", {.head_size = 5, .value_size = 7}));
  cases.push_back(additive("_weighted", "xxxp", {.head_size = 5, .value_size = 7}));
  cases.push_back(additive("_one_weight", "xxxp", {.head_size = 5, .value_size = 7}));
  cases.push_back(additive("_wide", "xxxp", {.head_size = 40, .value_size = 300}));
  cases.push_back(additive("_long", "xxxp", {.head_size = 5, .value_size = 7}));
  cases.push_back(additive("_causal_mask", "xxxcp", {.head_size = 5, .value_size = 7, .causal = true, .mask = true}));
}

}  // namespace trainctl::test
