// Attention: tiles of queries and keys, with the softmax computed as the tiles come (Milakov and Gimelshein, 2018).
#include "core/graph/ops/attention.h"

#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/attention_tiles.h"

namespace trainctl::cpu {
namespace {

// Rows and columns of a tile of scores.
constexpr std::int64_t forward_rows = 48, forward_columns = 128;

// The memory of a thread: the operands of a key head, and of a tile of queries. A row of denominators has a partial sum
// for each lane.
template <class Products>
struct Scratch {
  float *keys, *values, *queries, *scores, *sums, *largest, *denominators;
  std::int64_t count;

  Scratch(const AttentionHeads& heads, float* memory) {
    const std::int64_t width = whole_vectors(heads.a.value_size),
                       keys_in_tiles = round_up(heads.sizes.keys, forward_columns);
    FloatArena arena(memory);
    keys = arena.take(keys_in_tiles * Products::depth(heads.a.head_size));
    values = arena.take(Products::depth(heads.sizes.keys) * width);
    queries = arena.take(forward_rows * whole_vectors(Products::depth(heads.a.head_size)));
    scores = arena.take(forward_rows * forward_columns);
    sums = arena.take(forward_rows * width);
    largest = arena.take(forward_rows);
    denominators = arena.take(forward_rows * vector_values);
    count = arena.taken();
  }
};

// The largest of the columns of a row; minus infinity if there are none.
TRAINCTL_INLINE inline float largest_of(const float* scores, const SeenColumns& columns) {
  float most = minus_infinity;
#pragma omp simd reduction(max : most)
  for (std::int64_t k = columns.begin; k < columns.end; ++k) most = scores[k] > most ? scores[k] : most;
  return most;
}

template <class T, class Products>
class Head {
 public:
  Head(const Buffers& buffers, const AttentionHeads& heads, float* memory)
      : buffers_(buffers), heads_(heads), conditions_(buffers, heads, 0), scratch_(heads, memory) {}

  // Computes all query heads of a key head, and loads the operands of the next one meanwhile.
  void run(const KeyHead& now, const KeyHead& next) {
    prefetch(now, next);
    const auto [sample, key_head] = now;
    const AttentionAttributes& a = heads_.a;
    const bool packed = a.packed != 0;
    const HeadRows keys = heads_.key(sample, key_head), values = heads_.value(sample, key_head);
    const std::int64_t seen = conditions_.visibility(sample).end(heads_.sizes.queries - 1);  // no query sees later keys
    Products::copy_transposed(buffers_.in<T>(packed ? 0 : 1) + keys.offset, keys.step, seen, a.head_size,
                              Products::key_factor(a.scale), forward_columns, scratch_.keys);
    Products::copy_right(buffers_.in<T>(packed ? 0 : 2) + values.offset, values.step, seen, a.value_size, 1.0f,
                         scratch_.values);
    const std::int64_t group = heads_.sizes.group();
    for (std::int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
      for (std::int64_t t = 0; t < heads_.sizes.queries; t += forward_rows) {
        compute(sample, head, t, std::min(forward_rows, heads_.sizes.queries - t));
      }
    }
  }

 private:
  void prefetch(const KeyHead& now, const KeyHead& next) {
    const std::int64_t head = now.head * heads_.sizes.group();
    prefetch_.clear();
    prefetch_.add(buffers_.out<T>(0), heads_.result(now.sample, head), heads_.sizes.queries, heads_.a.value_size);
    each_operand(heads_, next,
                 [this](std::size_t tensor, const HeadRows& rows, std::int64_t count, std::int64_t columns) {
                   prefetch_.add(buffers_.in<T>(tensor), rows, count, columns);
                 });
  }

  // Computes the results of the queries [t, t + rows).
  void compute(std::int64_t sample, std::int64_t head, std::int64_t t, std::int64_t rows) {
    const Visibility visibility = conditions_.visibility(sample);
    const HeadRows queries = heads_.query(sample, head);
    Products::copy_left(buffers_.in<T>(0) + queries.offset + t * queries.step, queries.step, rows, heads_.a.head_size,
                        1.0f, scratch_.queries);
    std::fill_n(scratch_.largest, rows, minus_infinity);
    std::fill_n(scratch_.denominators, rows * vector_values, 0.0f);
    std::fill_n(scratch_.sums, rows * whole_vectors(heads_.a.value_size), 0.0f);
    const std::int64_t end = visibility.end(t + rows - 1);
    for (std::int64_t key = visibility.first(t) / forward_columns * forward_columns; key < end;
         key += forward_columns) {
      add_tile(sample, head, t, rows, key, std::min(forward_columns, end - key), visibility);
    }
    write(sample, head, t, rows);
  }

  // Adds the terms of the keys [key, key + count) to the sums of the queries.
  void add_tile(std::int64_t sample, std::int64_t head, std::int64_t t, std::int64_t rows, std::int64_t key,
                std::int64_t count, const Visibility& visibility) {
    const std::int64_t depth = Products::depth(heads_.a.head_size), width = whole_vectors(heads_.a.value_size);
    const Band band = seen_band(visibility, t, key);
    float* const scores = scratch_.scores;
    Products::multiply({.a = scratch_.queries,
                        .a_row = whole_vectors(depth),
                        .a_step = 1,
                        .b = scratch_.keys + key * depth,
                        .b_step = forward_columns,
                        .c = scores,
                        .c_row = forward_columns,
                        .rows = rows,
                        .columns = whole_vectors(count),
                        .depth = depth,
                        .of_c = band});
    scale_rows(scores, rows, whole_vectors(count), forward_columns, Products::score_factor(heads_.a.scale));
    prefetch_.load();
    scale_sums(t, rows, key, count, visibility);
    prefetch_.load();
    exponentiate(t, rows, key, count, visibility);
    for (std::int64_t row = 0; conditions_.drops() && row < rows; ++row) {
      const SeenColumns columns(visibility, t + row, key, count);
      drop(conditions_.mask(sample), head, t + row, key, columns, scores + row * forward_columns);
    }
    Products::multiply({.a = Products::as_left(scores, rows, count, forward_columns, scores),
                        .a_row = forward_columns,
                        .a_step = 1,
                        .b = scratch_.values + Products::depth(key) * width,
                        .b_step = width,
                        .c = scratch_.sums,
                        .c_row = width,
                        .rows = rows,
                        .columns = width,
                        .depth = Products::depth(count),
                        .add = true,
                        .of_a = band});
  }

  // Hides scores, and multiplies the sums of earlier tiles by the factor that the larger scores of this tile require.
  void scale_sums(std::int64_t t, std::int64_t rows, std::int64_t key, std::int64_t count,
                  const Visibility& visibility) {
    const std::int64_t width = whole_vectors(heads_.a.value_size);
    simd([=, this, &visibility]() TRAINCTL_INLINE {
      for (std::int64_t row = 0; row < rows; ++row) {
        float* const scores = scratch_.scores + row * forward_columns;
        const SeenColumns columns(visibility, t + row, key, count);
        columns.hide(visibility, t + row, key, count, scores);
        const float before = scratch_.largest[row], now = std::max(before, largest_of(scores, columns));
        scratch_.largest[row] = now;
        if (before == now || before == minus_infinity) continue;
        const float factor = exp_or_zero(before - now);
        float *sums = scratch_.sums + row * width, *denominators = scratch_.denominators + row * vector_values;
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) sums[i] *= factor;
#pragma omp simd
        for (std::int64_t i = 0; i < vector_values; ++i) denominators[i] *= factor;
      }
    });
  }

  // Replaces scores by the exponentials of their differences from the largest score so far, and adds these.
  void exponentiate(std::int64_t t, std::int64_t rows, std::int64_t key, std::int64_t count,
                    const Visibility& visibility) {
    simd([=, this, &visibility]() TRAINCTL_INLINE {
      for (std::int64_t row = 0; row < rows; ++row) {
        float* const scores = scratch_.scores + row * forward_columns;
        float* const denominators = scratch_.denominators + row * vector_values;
        const float largest = scratch_.largest[row], shift = largest == minus_infinity ? 0.0f : largest;
        float sums[vector_values];
        std::copy_n(denominators, vector_values, sums);
        each_vector(SeenColumns(visibility, t + row, key, count),
                    [&](std::int64_t k, std::int64_t lane) TRAINCTL_INLINE {
                      scores[k] = exp_or_zero(scores[k] - shift);
                      sums[lane] += scores[k];
                    });
        std::copy_n(sums, vector_values, denominators);
      }
    });
  }

  void write(std::int64_t sample, std::int64_t head, std::int64_t t, std::int64_t rows) {
    const HeadRows result = heads_.result(sample, head);
    T* y = buffers_.out<T>(0) + result.offset + t * result.step;
    float* log_sums = buffers_.out<float>(1) + heads_.sums(sample, head) + t;
    const std::int64_t width = heads_.a.value_size;
    for (std::int64_t row = 0; row < rows; ++row) {
      float denominator = 0;
      for (std::int64_t i = 0; i < vector_values; ++i) denominator += scratch_.denominators[row * vector_values + i];
      const float factor = denominator == 0.0f ? 0.0f : 1.0f / denominator;
      write_rows(scratch_.sums + row * whole_vectors(width), 1, width, factor, y + row * result.step, result.step);
      log_sums[row] = denominator == 0.0f ? 0.0f : scratch_.largest[row] + std::log(denominator);
    }
  }

  const Buffers& buffers_;
  const AttentionHeads& heads_;
  AttentionConditions conditions_;
  Scratch<Products> scratch_;
  HeadPrefetch prefetch_;
};

}  // namespace

Lowering lower_attention(const LowerContext& context) {
  const AttentionAttributes& a = context.op.as<Attention>().a;
  const AttentionHeads heads{a, AttentionSizes(a, context.input_types())};
  return with_products(context, [&](auto type, auto products) {
    using T = decltype(type);
    using Products = decltype(products);
    const std::int64_t floats = Scratch<Products>(heads, nullptr).count;
    const auto run = [=, threads = context.threads](const Buffers& buffers) {
      each_key_head<Head<T, Products>>(buffers, heads, threads, floats);
    };
    return own_kernel(context, run, context.threads * floats * size_of(DType::float32));
  });
}

}  // namespace trainctl::cpu
