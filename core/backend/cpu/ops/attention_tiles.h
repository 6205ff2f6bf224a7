// The tiles of scores of attention and its gradient on the CPU, and the loop over the key heads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/backend/cpu/lower.h"
#include "core/backend/cpu/ops/attention_head.h"
#include "core/backend/cpu/ops/attention_products.h"
#include "core/backend/cpu/simd/prefetch.h"
#include "core/graph/ops/attention_heads.h"

namespace trainctl::cpu {

// The exponential of a score: e^x like exp_approx(), but 0 for x < -87 and for minus infinity. It has a term less,
// whose absence changes the result by 1.2e-7 of it. NaN stays NaN.
TRAINCTL_INLINE inline float exp_or_zero(float x) {
  const float limited = 88.0f < x ? 88.0f : x;
  const float shifted = limited * 1.44269504f + 12582912.0f;  // as in exp_approx()
  const float n = shifted - 12582912.0f;
  const float r = (limited - n * 0.693145752f) - n * 1.42860677e-6f;
  float sum = 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  const float y = sum * std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127u) << 23);
  return x < -87.0f ? 0.0f : y;
}

// The scores that the order of positions lets queries see, in a tile that begins at query t and at key `key`.
constexpr Band seen_band(const Visibility& visibility, std::int64_t t, std::int64_t key) {
  const std::int64_t position = visibility.start + t - key;
  Band band;
  if (visibility.causal) {
    band.last = position;
  } else if (visibility.window != 0) {
    band.last = position + visibility.window - 1;
  }
  if (visibility.window != 0) band.first = position - visibility.window + 1;
  return band;
}

// The vectors of a row of a tile that have scores of keys which the query may see: columns [begin, end).
class SeenColumns {
 public:
  std::int64_t begin = 0, end = 0;

  // The columns that query t sees among `count` keys from `key` on, for the order of positions.
  SeenColumns(const Visibility& visibility, std::int64_t t, std::int64_t key, std::int64_t count)
      : first_(std::max<std::int64_t>(0, visibility.first(t) - key)), last_(std::min(count, visibility.end(t) - key)) {
    if (first_ >= last_) return;
    begin = first_ / vector_values * vector_values;
    end = whole_vectors(last_);
  }

  // Sets the scores of keys that query t does not see to minus infinity in these vectors, and the rest of a row of
  // `count` scores, up to a whole vector, to 0.
  TRAINCTL_INLINE void hide(const Visibility& visibility, std::int64_t t, std::int64_t key, std::int64_t count,
                            float* scores) const {
    clear_others(count, scores);
    if (begin == end) return;
    if (begin < first_) hide_in_vector(begin, scores);
    if (last_ < end) hide_in_vector(end - vector_values, scores);
    hide_by_inputs(visibility, t, key, first_, last_, scores);
  }
  // Sets a row of `count` values, up to a whole vector, to 0 outside these vectors.
  TRAINCTL_INLINE void clear_others(std::int64_t count, float* values) const {
    for (std::int64_t k = 0; k < begin; k += vector_values) clear_vector(values + k);
    for (std::int64_t k = end; k < count; k += vector_values) clear_vector(values + k);
  }

 private:
  TRAINCTL_INLINE void hide_in_vector(std::int64_t start, float* scores) const {
    float* const vector = scores + start;
    const auto first = static_cast<int>(first_ - start), last = static_cast<int>(last_ - start);
#pragma omp simd
    for (int lane = 0; lane < vector_values; ++lane) {
      vector[lane] = lane >= first && lane < last ? vector[lane] : minus_infinity;
    }
  }
  TRAINCTL_INLINE static void clear_vector(float* vector) {
#pragma omp simd
    for (int lane = 0; lane < vector_values; ++lane) vector[lane] = 0;
  }

  std::int64_t first_, last_;
};

// Calls body(column, lane) for the columns, in vectors of 16 lanes. `body` must be inlinable (TRAINCTL_INLINE).
template <class Body>
TRAINCTL_INLINE inline void each_vector(const SeenColumns& columns, const Body& body) {
  for (std::int64_t first = columns.begin; first < columns.end; first += vector_values) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < vector_values; ++lane) body(first + lane, lane);
  }
}

// Drops the probabilities, or their gradients, of query t of a head in these columns of a row; row[0] belongs to key
// `key`.
inline void drop(const AttentionMask& mask, std::int64_t head, std::int64_t t, std::int64_t key,
                 const SeenColumns& columns, float* row) {
  const std::int64_t count = std::min(columns.end, mask.keys - key) - columns.begin;
  mask.drop(head, t, key + columns.begin, count, row + columns.begin);
}

// Calls make(T{}, Products{}) with the C++ type of the first input and with the products for it and this processor.
template <class Make>
Lowering with_products(const LowerContext& context, const Make& make) {
  const DType dtype = context.input(0).dtype;
  if (dtype == DType::bfloat16 && multiplies_pairs()) {
    Lowering lowering = make(Bf16{}, PairProducts{});
    lowering.implementation = "own:avx512_bf16";
    return lowering;
  }
  return with_type(dtype, [&](auto type) { return make(type, FloatProducts{}); });
}

struct KeyHead {
  std::int64_t sample, head;
};

// Calls visit(number of the tensor, rows, number of rows, columns) for the rows of a key head in q, k and v, or in the
// packed tensor. Of the query heads it visits the first one.
template <class Visit>
void each_operand(const AttentionHeads& heads, const KeyHead& at, const Visit& visit) {
  const bool packed = heads.a.packed != 0;
  const std::int64_t size = heads.a.head_size, queries = heads.sizes.queries, keys = heads.sizes.keys;
  visit(std::size_t{0}, heads.query(at.sample, at.head * heads.sizes.group()), queries, size);
  visit(std::size_t{packed ? 0u : 1u}, heads.key(at.sample, at.head), keys, size);
  visit(std::size_t{packed ? 0u : 2u}, heads.value(at.sample, at.head), keys, heads.a.value_size);
}

// Loads the rows of a head into the second cache while another head, or the results before them, are computed.
class HeadPrefetch {
 public:
  void clear() { rows_.clear(); }
  template <class T>
  void add(const T* tensor, const HeadRows& rows, std::int64_t count, std::int64_t columns) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    rows_.add(tensor + rows.offset, count, rows.step * size, columns * size);
  }
  // Begins to load a portion; it is called several times in a tile of scores. Rows that would displace too much of the
  // cache are not loaded.
  void load() {
    constexpr std::int64_t portion = 16 << 10, most = 512 << 10;
    if (rows_.bytes() <= most) rows_.load(portion);
  }

 private:
  Prefetch rows_;
};

// Runs Work::run(now, next) for all key heads, shared among `threads` threads, where `next` is the key head that the
// thread computes after this one; the last one is its own next. Each thread has a Work of its own, with `floats` floats
// of the op's workspace.
template <class Work>
void each_key_head(const Buffers& buffers, const AttentionHeads& heads, int threads, std::int64_t floats) {
  const std::int64_t per_sample = heads.sizes.key_heads, count = heads.sizes.samples * per_sample;
  const auto at = [=](std::int64_t i) { return KeyHead{i / per_sample, i % per_sample}; };
  parallel_ranges(threads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t share = begin; share < end; ++share) {
      Work work(buffers, heads, buffers.workspace<float>() + share * floats);
      const std::int64_t last = count * (share + 1) / threads - 1;
      for (std::int64_t i = count * share / threads; i <= last; ++i) work.run(at(i), at(std::min(i + 1, last)));
    }
  });
}

}  // namespace trainctl::cpu
