// Where the heads of an attention op lie in its tensors, and which keys a query sees, for the kernels of all backends.
#pragma once

#include "core/graph/ops/attention.h"

namespace trainctl {

// The rows of a head in a tensor: row t has its first value at `offset` + t * `step`, in elements.
struct HeadRows {
  std::int64_t offset, step;
};

// The heads in the tensors of an attention op, or of its gradient.
struct AttentionHeads {
  AttentionAttributes a;
  AttentionSizes sizes;

  constexpr HeadRows query(std::int64_t sample, std::int64_t head) const {
    const std::int64_t group = sizes.group();
    return a.packed != 0 ? packed(sample, head / group, head % group)
                         : apart(sample, sizes.queries, sizes.heads * a.head_size, head * a.head_size);
  }
  constexpr HeadRows key(std::int64_t sample, std::int64_t head) const {
    return a.packed != 0 ? packed(sample, head, a.packed)
                         : apart(sample, sizes.keys, sizes.key_heads * a.head_size, head * a.head_size);
  }
  constexpr HeadRows value(std::int64_t sample, std::int64_t head) const {
    return a.packed != 0 ? packed(sample, head, a.packed + 1)
                         : apart(sample, sizes.keys, sizes.key_heads * a.value_size, head * a.value_size);
  }
  // In y and its gradient.
  constexpr HeadRows result(std::int64_t sample, std::int64_t head) const {
    return apart(sample, sizes.queries, sizes.heads * a.value_size, head * a.value_size);
  }
  // In log_sum_exp.
  constexpr std::int64_t sums(std::int64_t sample, std::int64_t head) const {
    return (sample * sizes.heads + head) * sizes.queries;
  }

 private:
  static constexpr HeadRows apart(std::int64_t sample, std::int64_t rows, std::int64_t columns, std::int64_t column) {
    return {sample * rows * columns + column, columns};
  }
  constexpr HeadRows packed(std::int64_t sample, std::int64_t key_head, std::int64_t place) const {
    const std::int64_t width = a.packed + 2;
    return apart(sample, sizes.queries, sizes.key_heads * width * a.head_size,
                 (key_head * width + place) * a.head_size);
  }
};

// Tells which keys the queries of a sample see.
struct Visibility {
  const std::uint8_t* mask = nullptr;       // of the sample's keys; null: all may be seen
  const std::int32_t* documents = nullptr;  // of the sample's positions; null: all positions are one document
  bool causal = false;
  std::int64_t window = 0, keys = 0;
  std::int64_t start = 0;  // the position of query 0 among the keys

  // The keys [first, end) that the order of positions lets query t see; both grow with t.
  constexpr std::int64_t first(std::int64_t t) const {
    const std::int64_t position = start + t;
    return window != 0 && position >= window ? position - window + 1 : 0;
  }
  constexpr std::int64_t end(std::int64_t t) const {
    const std::int64_t position = start + t;
    const std::int64_t last = causal ? position + 1 : window != 0 ? position + window : keys;
    return last < keys ? last : keys;
  }
  // Whether the mask and the documents let query t see key s.
  constexpr bool may_see(std::int64_t t, std::int64_t s) const {
    return (mask == nullptr || mask[s] != 0) && (documents == nullptr || documents[s] == documents[t]);
  }
};

}  // namespace trainctl
