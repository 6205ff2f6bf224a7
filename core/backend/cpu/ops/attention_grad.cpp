// The gradient of attention: tiles of keys and queries, whose probabilities are computed again.
#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/attention_tiles.h"
#include "core/graph/ops/attention.h"

namespace trainctl::cpu {
namespace {

// Rows and columns of a tile of scores.
constexpr std::int64_t gradient_rows = 48, gradient_columns = 64;

constexpr std::size_t first_operand = 3;  // after dy, y and log_sum_exp

// The memory of a thread: the operands of a key head and a query head, their gradients in float32, and a tile of
// scores. Operands "in terms" are right operands whose depth are the positions.
template <class Products>
struct GradScratch {
  float *transposed_keys, *transposed_values, *keys_in_terms, *dkeys, *dvalues;
  float *queries, *dy, *queries_in_terms, *dy_in_terms, *dqueries, *projections, *scores, *dscores, *transposed;
  std::int64_t count;

  GradScratch(const AttentionHeads& heads, float* memory) {
    const auto depth = [](std::int64_t values) { return Products::depth(values); };
    const std::int64_t size = heads.a.head_size, value_size = heads.a.value_size;
    const std::int64_t width = whole_vectors(size), value_width = whole_vectors(value_size);
    const std::int64_t keys = heads.sizes.keys, tiles = round_up(keys, gradient_columns), rows = heads.sizes.queries;
    FloatArena arena(memory);
    transposed_keys = arena.take(tiles * depth(size));
    transposed_values = arena.take(tiles * depth(value_size));
    keys_in_terms = arena.take(depth(keys) * width);
    dkeys = arena.take(keys * width);
    dvalues = arena.take(keys * value_width);
    queries = arena.take(rows * whole_vectors(depth(size)));
    dy = arena.take(rows * whole_vectors(depth(value_size)));
    queries_in_terms = Products::left_is_right ? queries : arena.take(depth(rows) * width);
    dy_in_terms = Products::left_is_right ? dy : arena.take(depth(rows) * value_width);
    dqueries = arena.take(rows * width);
    projections = arena.take(rows);
    scores = arena.take(gradient_rows * gradient_columns);
    dscores = arena.take(gradient_rows * gradient_columns);
    transposed = Products::left_is_right ? dscores : arena.take(depth(gradient_rows) * gradient_columns);
    count = arena.taken();
  }
};

// A tile of the scores of a head: queries [t, t + rows), keys [key, key + count).
struct ScoreTile {
  std::int64_t sample, head, t, rows, key, count;
};

template <class T, class Products>
class HeadGradient {
 public:
  HeadGradient(const Buffers& buffers, const AttentionHeads& heads, float* memory)
      : buffers_(buffers),
        heads_(heads),
        conditions_(buffers, heads, first_operand),
        s_(heads, memory),
        width_(whole_vectors(heads.a.head_size)),
        value_width_(whole_vectors(heads.a.value_size)) {}

  // Computes the gradients of a key head and its query heads, and loads the operands of the next one meanwhile.
  void run(const KeyHead& now, const KeyHead& next) {
    prefetch(now, next);
    const auto [sample, key_head] = now;
    const AttentionAttributes& a = heads_.a;
    const std::int64_t keys = heads_.sizes.keys, group = heads_.sizes.group();
    const std::size_t key = a.packed != 0 ? 0 : 1, value = a.packed != 0 ? 0 : 2;
    const HeadRows key_rows = heads_.key(sample, key_head), value_rows = heads_.value(sample, key_head);
    const T* k = buffers_.in<T>(first_operand + key) + key_rows.offset;
    const T* v = buffers_.in<T>(first_operand + value) + value_rows.offset;
    const float factor = Products::key_factor(a.scale);
    Products::copy_transposed(k, key_rows.step, keys, a.head_size, factor, gradient_columns, s_.transposed_keys);
    Products::copy_transposed(v, value_rows.step, keys, a.value_size, 1.0f, gradient_columns, s_.transposed_values);
    Products::copy_right(k, key_rows.step, keys, a.head_size, factor, s_.keys_in_terms);
    std::fill_n(s_.dkeys, keys * width_, 0.0f);
    std::fill_n(s_.dvalues, keys * value_width_, 0.0f);
    for (std::int64_t head = key_head * group; head < (key_head + 1) * group; ++head) compute(sample, head);
    write_rows(s_.dkeys, keys, a.head_size, a.scale, buffers_.out<T>(key) + key_rows.offset, key_rows.step);
    write_rows(s_.dvalues, keys, a.value_size, 1.0f, buffers_.out<T>(value) + value_rows.offset, value_rows.step);
  }

 private:
  void prefetch(const KeyHead& now, const KeyHead& next) {
    prefetch_.clear();
    each_operand(heads_, now,
                 [this](std::size_t tensor, const HeadRows& rows, std::int64_t count, std::int64_t columns) {
                   prefetch_.add(buffers_.out<T>(tensor), rows, count, columns);
                 });
    each_operand(heads_, next,
                 [this](std::size_t tensor, const HeadRows& rows, std::int64_t count, std::int64_t columns) {
                   prefetch_.add(buffers_.in<T>(first_operand + tensor), rows, count, columns);
                 });
    const HeadRows result = heads_.result(next.sample, next.head * heads_.sizes.group());
    for (const std::size_t gradient_or_result : {0u, 1u}) {
      prefetch_.add(buffers_.in<T>(gradient_or_result), result, heads_.sizes.queries, heads_.a.value_size);
    }
  }

  // Computes the gradient of a query head, and adds its terms to the gradients of its key head.
  void compute(std::int64_t sample, std::int64_t head) {
    const AttentionAttributes& a = heads_.a;
    const std::int64_t queries = heads_.sizes.queries, keys = heads_.sizes.keys;
    const HeadRows rows = heads_.query(sample, head), result = heads_.result(sample, head);
    const T *q = buffers_.in<T>(first_operand) + rows.offset, *dy = buffers_.in<T>(0) + result.offset;
    Products::copy_left(q, rows.step, queries, a.head_size, 1.0f, s_.queries);
    Products::copy_left(dy, result.step, queries, a.value_size, 1.0f, s_.dy);
    if constexpr (!Products::left_is_right) {
      Products::copy_right(q, rows.step, queries, a.head_size, 1.0f, s_.queries_in_terms);
      Products::copy_right(dy, result.step, queries, a.value_size, 1.0f, s_.dy_in_terms);
    }
    project(dy, buffers_.in<T>(1) + result.offset, result.step);
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
    const float factor = Products::score_factor(a.scale);
    write_rows(s_.dqueries, queries, a.head_size, factor, buffers_.out<T>(0) + rows.offset, rows.step);
  }

  // projections[t] = dy[t] . y[t], the mean of the probabilities' gradients under the probabilities.
  void project(const T* dy, const T* y, std::int64_t step) {
    simd([=, this]() TRAINCTL_INLINE {
      for (std::int64_t t = 0; t < heads_.sizes.queries; ++t) {
        const T *gradient = dy + t * step, *row = y + t * step;
        const auto term = [=](std::int64_t i) TRAINCTL_INLINE { return load(gradient[i]) * load(row[i]); };
        s_.projections[t] = lane_sum<float>(heads_.a.value_size, term);
      }
    });
  }

  void add_tile(const ScoreTile& tile, const Visibility& visibility) {
    const AttentionAttributes& a = heads_.a;
    const Band band = seen_band(visibility, tile.t, tile.key);
    multiply_scores(tile, band, s_.queries, s_.transposed_keys, a.head_size, s_.scores);
    multiply_scores(tile, band, s_.dy, s_.transposed_values, a.value_size, s_.dscores);
    scale_rows(s_.scores, tile.rows, whole_vectors(tile.count), gradient_columns, Products::score_factor(a.scale));
    prefetch_.load();
    differentiate_softmax(tile, visibility);
    prefetch_.load();
    add_to_keys(tile, band, s_.scores, s_.scores, s_.dy_in_terms, value_width_, s_.dvalues);
    add_to_keys(tile, band, s_.dscores, s_.transposed, s_.queries_in_terms, width_, s_.dkeys);
    Products::multiply({.a = Products::as_left(s_.dscores, tile.rows, tile.count, gradient_columns, s_.dscores),
                        .a_row = gradient_columns,
                        .a_step = 1,
                        .b = s_.keys_in_terms + Products::depth(tile.key) * width_,
                        .b_step = width_,
                        .c = s_.dqueries + tile.t * width_,
                        .c_row = width_,
                        .rows = tile.rows,
                        .columns = width_,
                        .depth = Products::depth(tile.count),
                        .add = true,
                        .of_a = band});
  }

  // scores = rows columns^T for a tile, where both operands have `size` values at each position.
  void multiply_scores(const ScoreTile& tile, const Band& band, const float* rows, const float* columns,
                       std::int64_t size, float* scores) {
    const std::int64_t depth = Products::depth(size), row = whole_vectors(depth);
    Products::multiply({.a = rows + tile.t * row,
                        .a_row = row,
                        .a_step = 1,
                        .b = columns + tile.key * depth,
                        .b_step = gradient_columns,
                        .c = scores,
                        .c_row = gradient_columns,
                        .rows = tile.rows,
                        .columns = whole_vectors(tile.count),
                        .depth = depth,
                        .of_c = band});
  }

  // sums += scores^T terms for the keys of a tile. `memory` is for the left operand.
  void add_to_keys(const ScoreTile& tile, const Band& band, const float* scores, float* memory, const float* terms,
                   std::int64_t width, float* sums) {
    Products::multiply({.a = Products::as_left_transposed(scores, tile.rows, tile.count, gradient_columns, memory),
                        .a_row = 1,
                        .a_step = gradient_columns,
                        .b = terms + Products::depth(tile.t) * width,
                        .b_step = width,
                        .c = sums + tile.key * width,
                        .c_row = width,
                        .rows = tile.count,
                        .columns = width,
                        .depth = Products::depth(tile.rows),
                        .add = true,
                        .of_a = band.transposed()});
  }

  // Replaces the scores by the probabilities after dropout, and the gradients of these by the gradients of the scores.
  void differentiate_softmax(const ScoreTile& tile, const Visibility& visibility) {
    const float* log_sums = buffers_.in<float>(2) + heads_.sums(tile.sample, tile.head) + tile.t;
    if (conditions_.drops()) drop(tile, visibility, s_.dscores);
    simd([=, this, &tile, &visibility]() TRAINCTL_INLINE {
      for (std::int64_t row = 0; row < tile.rows; ++row) {
        float *scores = s_.scores + row * gradient_columns, *dscores = s_.dscores + row * gradient_columns;
        const float log_sum = log_sums[row], projection = s_.projections[tile.t + row];
        const SeenColumns columns(visibility, tile.t + row, tile.key, tile.count);
        columns.hide(visibility, tile.t + row, tile.key, tile.count, scores);
        columns.clear_others(tile.count, dscores);
        each_vector(columns, [=](std::int64_t k, std::int64_t /*lane*/) TRAINCTL_INLINE {
          scores[k] = exp_or_zero(scores[k] - log_sum);
          dscores[k] = scores[k] * (dscores[k] - projection);
        });
      }
    });
    if (conditions_.drops()) drop(tile, visibility, s_.scores);
  }

  void drop(const ScoreTile& tile, const Visibility& visibility, float* values) const {
    const AttentionMask mask = conditions_.mask(tile.sample);
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      const SeenColumns columns(visibility, tile.t + row, tile.key, tile.count);
      cpu::drop(mask, tile.head, tile.t + row, tile.key, columns, values + row * gradient_columns);
    }
  }

  const Buffers& buffers_;
  const AttentionHeads& heads_;
  AttentionConditions conditions_;
  GradScratch<Products> s_;
  HeadPrefetch prefetch_;
  std::int64_t width_, value_width_;
};

}  // namespace

Lowering lower_attention_grad(const LowerContext& context) {
  const AttentionAttributes& a = context.op.as<AttentionGrad>().a;
  const std::vector<TensorType> types = context.input_types();
  const AttentionHeads heads{a, AttentionSizes(a, std::span(types).subspan(first_operand))};
  return with_products(context, [&](auto type, auto products) {
    using T = decltype(type);
    using Products = decltype(products);
    const std::int64_t floats = GradScratch<Products>(heads, nullptr).count;
    const auto run = [=, threads = context.threads](const Buffers& buffers) {
      each_key_head<HeadGradient<T, Products>>(buffers, heads, threads, floats);
    };
    return own_kernel(context, run, context.threads * floats * size_of(DType::float32));
  });
}

}  // namespace trainctl::cpu
