// The gradient of attention: tiles of keys and queries, whose probabilities are computed again.
#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/attention_head.h"
#include "core/backend/cpu/simd/product.h"
#include "core/graph/ops/attention.h"

namespace trainctl::cpu {
namespace {

// Rows and columns of a tile of scores.
constexpr std::int64_t gradient_rows = 48, gradient_columns = 64;

constexpr std::size_t first_operand = 3;  // after dy, y and log_sum_exp

// The memory of a thread: a key head and a query head in float32, their gradients, and a tile of scores.
struct GradScratch {
  float *transposed_keys, *transposed_values, *keys, *dkeys, *dvalues;
  float *queries, *dy, *dqueries, *projections, *scores, *dscores;
  std::int64_t count;

  GradScratch(const AttentionHeads& heads, float* memory) {
    const std::int64_t width = whole_vectors(heads.a.head_size), value_width = whole_vectors(heads.a.value_size);
    const std::int64_t keys_in_tiles = round_up(heads.sizes.keys, gradient_columns);
    FloatArena arena(memory);
    transposed_keys = arena.take(keys_in_tiles * heads.a.head_size);
    transposed_values = arena.take(keys_in_tiles * heads.a.value_size);
    keys = arena.take(heads.sizes.keys * width);
    dkeys = arena.take(heads.sizes.keys * width);
    dvalues = arena.take(heads.sizes.keys * value_width);
    queries = arena.take(heads.sizes.queries * width);
    dy = arena.take(heads.sizes.queries * value_width);
    dqueries = arena.take(heads.sizes.queries * width);
    projections = arena.take(heads.sizes.queries);
    scores = arena.take(gradient_rows * gradient_columns);
    dscores = arena.take(gradient_rows * gradient_columns);
    count = arena.taken();
  }
};

// A tile of the scores of a head: queries [t, t + rows), keys [key, key + count).
struct ScoreTile {
  std::int64_t sample, head, t, rows, key, count;
};

template <class T>
class HeadGradient {
 public:
  HeadGradient(const Buffers& buffers, const AttentionHeads& heads, float* memory)
      : buffers_(buffers),
        heads_(heads),
        conditions_(buffers, heads, first_operand),
        s_(heads, memory),
        width_(whole_vectors(heads.a.head_size)),
        value_width_(whole_vectors(heads.a.value_size)) {}

  // Computes the gradients of a key head and its query heads.
  void run(std::int64_t sample, std::int64_t key_head) {
    const AttentionAttributes& a = heads_.a;
    const std::int64_t keys = heads_.sizes.keys, group = heads_.sizes.group();
    const std::size_t key = a.packed != 0 ? 0 : 1, value = a.packed != 0 ? 0 : 2;
    const HeadRows key_rows = heads_.key(sample, key_head), value_rows = heads_.value(sample, key_head);
    const T* k = buffers_.in<T>(first_operand + key) + key_rows.offset;
    const T* v = buffers_.in<T>(first_operand + value) + value_rows.offset;
    copy_transposed(k, key_rows.step, keys, a.head_size, a.scale, gradient_columns, s_.transposed_keys);
    copy_transposed(v, value_rows.step, keys, a.value_size, 1.0f, gradient_columns, s_.transposed_values);
    copy_rows(k, key_rows.step, keys, a.head_size, a.scale, s_.keys);
    std::fill_n(s_.dkeys, keys * width_, 0.0f);
    std::fill_n(s_.dvalues, keys * value_width_, 0.0f);
    for (std::int64_t head = key_head * group; head < (key_head + 1) * group; ++head) compute(sample, head);
    write_rows(s_.dkeys, keys, a.head_size, a.scale, buffers_.out<T>(key) + key_rows.offset, key_rows.step);
    write_rows(s_.dvalues, keys, a.value_size, 1.0f, buffers_.out<T>(value) + value_rows.offset, value_rows.step);
  }

 private:
  // Computes the gradient of a query head, and adds its terms to the gradients of its key head.
  void compute(std::int64_t sample, std::int64_t head) {
    const AttentionAttributes& a = heads_.a;
    const std::int64_t queries = heads_.sizes.queries, keys = heads_.sizes.keys;
    const HeadRows rows = heads_.query(sample, head), result = heads_.result(sample, head);
    copy_rows(buffers_.in<T>(first_operand) + rows.offset, rows.step, queries, a.head_size, 1.0f, s_.queries);
    copy_rows(buffers_.in<T>(0) + result.offset, result.step, queries, a.value_size, 1.0f, s_.dy);
    project(buffers_.in<T>(1) + result.offset, result.step);
    std::fill_n(s_.dqueries, queries * width_, 0.0f);
    const Visibility visibility = conditions_.visibility(sample);
    for (std::int64_t key = 0; key < keys; key += gradient_columns) {
      for (std::int64_t t = 0; t < queries; t += gradient_rows) {
        const std::int64_t count = std::min(gradient_rows, queries - t), last = t + count - 1;
        const std::int64_t end = std::min(visibility.end(last), key + gradient_columns);
        if (end <= key || visibility.first(t) >= end) continue;
        add_tile({sample, head, t, count, key, end - key}, visibility);
      }
    }
    write_rows(s_.dqueries, queries, a.head_size, 1.0f, buffers_.out<T>(0) + rows.offset, rows.step);
  }

  // projections[t] = dy[t] . y[t], the mean of the probabilities' gradients under the probabilities.
  void project(const T* y, std::int64_t step) {
    simd([=, this]() TRAINCTL_INLINE {
      for (std::int64_t t = 0; t < heads_.sizes.queries; ++t) {
        const float* dy = s_.dy + t * value_width_;
        const T* row = y + t * step;
        const auto term = [=](std::int64_t i) TRAINCTL_INLINE { return dy[i] * load(row[i]); };
        s_.projections[t] = lane_sum<float>(heads_.a.value_size, term);
      }
    });
  }

  void add_tile(const ScoreTile& tile, const Visibility& visibility) {
    const float* const queries = s_.queries + tile.t * width_;
    const float* const dy = s_.dy + tile.t * value_width_;
    const std::int64_t columns = whole_vectors(tile.count);
    multiply({.a = queries,
              .a_row = width_,
              .a_step = 1,
              .b = s_.transposed_keys + tile.key * heads_.a.head_size,
              .b_step = gradient_columns,
              .c = s_.scores,
              .c_row = gradient_columns,
              .rows = tile.rows,
              .columns = columns,
              .depth = heads_.a.head_size});
    multiply({.a = dy,
              .a_row = value_width_,
              .a_step = 1,
              .b = s_.transposed_values + tile.key * heads_.a.value_size,
              .b_step = gradient_columns,
              .c = s_.dscores,
              .c_row = gradient_columns,
              .rows = tile.rows,
              .columns = columns,
              .depth = heads_.a.value_size});
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      hide(visibility, tile.t + row, tile.key, tile.count, s_.scores + row * gradient_columns);
    }
    differentiate_softmax(tile);
    multiply({.a = s_.scores,
              .a_row = 1,
              .a_step = gradient_columns,
              .b = dy,
              .b_step = value_width_,
              .c = s_.dvalues + tile.key * value_width_,
              .c_row = value_width_,
              .rows = tile.count,
              .columns = value_width_,
              .depth = tile.rows,
              .add = true});
    multiply({.a = s_.dscores,
              .a_row = 1,
              .a_step = gradient_columns,
              .b = queries,
              .b_step = width_,
              .c = s_.dkeys + tile.key * width_,
              .c_row = width_,
              .rows = tile.count,
              .columns = width_,
              .depth = tile.rows,
              .add = true});
    multiply({.a = s_.dscores,
              .a_row = gradient_columns,
              .a_step = 1,
              .b = s_.keys + tile.key * width_,
              .b_step = width_,
              .c = s_.dqueries + tile.t * width_,
              .c_row = width_,
              .rows = tile.rows,
              .columns = width_,
              .depth = tile.count,
              .add = true});
  }

  // Replaces the scores by the probabilities after dropout, and the gradients of these by the gradients of the scores.
  void differentiate_softmax(const ScoreTile& tile) {
    const float* log_sums = buffers_.in<float>(2) + heads_.sums(tile.sample, tile.head) + tile.t;
    const bool drops = conditions_.drops();
    for (std::int64_t row = 0; drops && row < tile.rows; ++row) {
      conditions_.mask(tile.sample)
          .drop(tile.head, tile.t + row, tile.key, tile.count, s_.dscores + row * gradient_columns);
    }
    simd([=, this]() TRAINCTL_INLINE {
      for (std::int64_t row = 0; row < tile.rows; ++row) {
        float *scores = s_.scores + row * gradient_columns, *dscores = s_.dscores + row * gradient_columns;
        const float log_sum = log_sums[row], projection = s_.projections[tile.t + row];
#pragma omp simd
        for (std::int64_t k = 0; k < tile.count; ++k) {
          const float probability = scores[k] == minus_infinity ? 0.0f : exp_approx(scores[k] - log_sum);
          scores[k] = probability;
          dscores[k] = probability * (dscores[k] - projection);
        }
      }
    });
    for (std::int64_t row = 0; drops && row < tile.rows; ++row) {
      conditions_.mask(tile.sample)
          .drop(tile.head, tile.t + row, tile.key, tile.count, s_.scores + row * gradient_columns);
    }
  }

  const Buffers& buffers_;
  const AttentionHeads& heads_;
  AttentionConditions conditions_;
  GradScratch s_;
  std::int64_t width_, value_width_;
};

}  // namespace

Lowering lower_attention_grad(const LowerContext& context) {
  const AttentionAttributes& a = context.op.as<AttentionGrad>().a;
  const std::vector<TensorType> types = context.input_types();
  const AttentionHeads heads{a, AttentionSizes(a, std::span(types).subspan(first_operand))};
  const std::int64_t floats = GradScratch(heads, nullptr).count;
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    const auto run = [=, threads = context.threads](const Buffers& buffers) {
      each_key_head<HeadGradient<T>>(buffers, heads, threads, floats);
    };
    return own_kernel(context, run, context.threads * floats * size_of(DType::float32));
  });
}

}  // namespace trainctl::cpu
