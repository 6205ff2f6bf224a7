// The gradient of attention, from probabilities that are computed again: one kernel for the gradients of keys and
// values, whose blocks go through all queries, and one for the gradient of queries. No sum depends on the order of
// blocks. Gradients may have the memory of their inputs: the gradient of queries, which all keys need, waits in the
// workspace.
#include "core/backend/cuda/ops/attention_tile.h"

namespace trainctl::cuda {
namespace {

constexpr std::size_t first_operand = 3;  // after dy, y and log_sum_exp

// The tensors of the op. `projections` is [N, H, T]: the products of rows of dy and y. `dq` is [N, T, H * head_size].
template <class T>
struct GradientTensors {
  const T *dy, *y;
  const float* log_sum_exp;
  const T *q, *k, *v;
  float* projections;
  T *dq, *dk, *dv;
};

// The rows of a head in [N, T, H * head_size].
__device__ HeadRows waiting_rows(const AttentionHeads& heads, std::int64_t sample, std::int64_t head) {
  const std::int64_t step = heads.sizes.heads * heads.a.head_size;
  return {sample * heads.sizes.queries * step + head * heads.a.head_size, step};
}

// Blocks: (tiles of queries, heads, samples); each of the 16 threads of a row adds every 16th product.
template <class T>
__global__ void project(AttentionCall call, GradientTensors<T> tensors) {
  const AttentionSizes& sizes = call.heads.sizes;
  const AttentionBlock block(divide_up(sizes.queries, team), sizes.heads);
  const std::int64_t sample = block.sample, head = block.head, t = block.tile * team + thread_y();
  const HeadRows rows = call.heads.result(sample, head);
  float sum = 0;
  for (int i = thread_x(); t < sizes.queries && i < call.heads.a.value_size; i += team) {
    const std::int64_t at = rows.offset + t * rows.step + i;
    sum += load(tensors.dy[at]) * load(tensors.y[at]);
  }
  sum = sum_of_row(sum);
  if (thread_x() == 0 && t < sizes.queries) tensors.projections[call.heads.sums(sample, head) + t] = sum;
}

// The probabilities after dropout of a tile, and the gradients of its scores, in shared memory.
template <class Sizes>
struct ScoreTiles {
  float probabilities[Sizes::rows * (Sizes::rows + 1)], gradients[Sizes::rows * (Sizes::rows + 1)];
};

// Computes the tile of queries [t, ...) and keys [key, ...), whose rows are in shared memory.
template <class Sizes, class T>
__device__ void compute_scores(const AttentionCall& call, const GradientTensors<T>& tensors,
                               const Visibility& visibility, std::int64_t sample, std::int64_t head, std::int64_t first,
                               std::int64_t key, const float* queries, const float* dy, const float* keys,
                               const float* values, ScoreTiles<Sizes>& tiles) {
  const AttentionAttributes& a = call.heads.a;
  const AttentionSizes& sizes = call.heads.sizes;
  float scores[Sizes::per_thread][Sizes::per_thread], slopes[Sizes::per_thread][Sizes::per_thread];
  multiply_rows<Sizes>(queries, keys, a.head_size, a.scale, scores);
  multiply_rows<Sizes>(dy, values, a.value_size, 1.0f, slopes);
#pragma unroll
  for (int i = 0; i < Sizes::per_thread; ++i) {
    const int row = thread_y() * Sizes::per_thread + i;
    const std::int64_t t = first + row;
    const bool inside = t < sizes.queries;
    const std::int64_t at = call.heads.sums(sample, head) + (inside ? t : 0);
    const float log_sum = tensors.log_sum_exp[at], projection = tensors.projections[at];
#pragma unroll
    for (int j = 0; j < Sizes::per_thread; ++j) {
      const int column = thread_x() + team * j;
      const std::int64_t s = key + column;
      const bool sees = inside && s >= visibility.first(t) && s < visibility.end(t) && visibility.may_see(t, s);
      const float probability = sees ? expf(scores[i][j] - log_sum) : 0.0f;
      const float factor = sees ? call.dropout_factor(sample, head, t, s) : 0.0f;
      tiles.probabilities[row * (Sizes::rows + 1) + column] = probability * factor;
      tiles.gradients[row * (Sizes::rows + 1) + column] =
          sees ? probability * (slopes[i][j] * factor - projection) * a.scale : 0.0f;
    }
  }
}

// Blocks: (tiles of keys, key heads, samples).
template <class Sizes, class T>
__global__ void key_gradients(AttentionCall call, GradientTensors<T> tensors) {
  __shared__ float queries[Sizes::rows * Sizes::stride], dy[Sizes::rows * Sizes::stride];
  __shared__ float keys[Sizes::rows * Sizes::stride], values[Sizes::rows * Sizes::stride];
  __shared__ ScoreTiles<Sizes> tiles;
  const AttentionAttributes& a = call.heads.a;
  const AttentionSizes& sizes = call.heads.sizes;
  const AttentionBlock block(divide_up(sizes.keys, Sizes::rows), sizes.key_heads);
  const std::int64_t sample = block.sample, key_head = block.head, key = block.tile * Sizes::rows;
  const Visibility visibility = call.visibility(sample);
  const HeadRows key_rows = call.heads.key(sample, key_head), value_rows = call.heads.value(sample, key_head);
  fetch<Sizes>(tensors.k, key_rows, key, sizes.keys, a.head_size, keys);
  fetch<Sizes>(tensors.v, value_rows, key, sizes.keys, a.value_size, values);
  float dkeys[Sizes::per_thread][Sizes::columns] = {}, dvalues[Sizes::per_thread][Sizes::columns] = {};
  for (std::int64_t head = key_head * sizes.group(); head < (key_head + 1) * sizes.group(); ++head) {
    for (std::int64_t t = 0; t < sizes.queries; t += Sizes::rows) {
      const std::int64_t last = min(t + Sizes::rows, sizes.queries) - 1;
      if (visibility.end(last) <= key || visibility.first(t) >= key + Sizes::rows) continue;
      __syncthreads();  // the tiles of earlier queries may still be read
      fetch<Sizes>(tensors.q, call.heads.query(sample, head), t, sizes.queries, a.head_size, queries);
      fetch<Sizes>(tensors.dy, call.heads.result(sample, head), t, sizes.queries, a.value_size, dy);
      __syncthreads();
      compute_scores(call, tensors, visibility, sample, head, t, key, queries, dy, keys, values, tiles);
      __syncthreads();
      add_products<Sizes>([&](int row, int s) { return tiles.probabilities[s * (Sizes::rows + 1) + row]; }, dy,
                          dvalues);
      add_products<Sizes>([&](int row, int s) { return tiles.gradients[s * (Sizes::rows + 1) + row]; }, queries, dkeys);
    }
  }
  const auto one = [](int) { return 1.0f; };
  put<Sizes>(dkeys, one, tensors.dk, key_rows, key, sizes.keys, a.head_size);
  put<Sizes>(dvalues, one, tensors.dv, value_rows, key, sizes.keys, a.value_size);
}

// Blocks: (tiles of queries, heads, samples).
template <class Sizes, class T>
__global__ void query_gradients(AttentionCall call, GradientTensors<T> tensors) {
  __shared__ float queries[Sizes::rows * Sizes::stride], dy[Sizes::rows * Sizes::stride];
  __shared__ float keys[Sizes::rows * Sizes::stride], values[Sizes::rows * Sizes::stride];
  __shared__ ScoreTiles<Sizes> tiles;
  const AttentionAttributes& a = call.heads.a;
  const AttentionSizes& sizes = call.heads.sizes;
  const AttentionBlock block(divide_up(sizes.queries, Sizes::rows), sizes.heads);
  const std::int64_t sample = block.sample, head = block.head, key_head = head / sizes.group();
  const std::int64_t t = block.tile * Sizes::rows;
  const Visibility visibility = call.visibility(sample);
  const HeadRows rows = call.heads.query(sample, head);
  fetch<Sizes>(tensors.q, rows, t, sizes.queries, a.head_size, queries);
  fetch<Sizes>(tensors.dy, call.heads.result(sample, head), t, sizes.queries, a.value_size, dy);
  float dqueries[Sizes::per_thread][Sizes::columns] = {};
  const std::int64_t last = min(t + Sizes::rows, sizes.queries) - 1;
  for (std::int64_t key = visibility.first(t) / Sizes::rows * Sizes::rows; key < visibility.end(last);
       key += Sizes::rows) {
    __syncthreads();
    fetch<Sizes>(tensors.k, call.heads.key(sample, key_head), key, sizes.keys, a.head_size, keys);
    fetch<Sizes>(tensors.v, call.heads.value(sample, key_head), key, sizes.keys, a.value_size, values);
    __syncthreads();
    compute_scores(call, tensors, visibility, sample, head, t, key, queries, dy, keys, values, tiles);
    __syncthreads();
    add_products<Sizes>([&](int row, int s) { return tiles.gradients[row * (Sizes::rows + 1) + s]; }, keys, dqueries);
  }
  put<Sizes>(
      dqueries, [](int) { return 1.0f; }, tensors.dq, waiting_rows(call.heads, sample, head), t, sizes.queries,
      a.head_size);
}

// Moves the gradient of queries from the workspace to the output.
template <class T>
__global__ void move_gradient(AttentionHeads heads, std::int64_t elements, const T* from, T* to) {
  const std::int64_t size = heads.a.head_size, row_size = heads.sizes.heads * size;
  for (std::int64_t i = first_element(); i < elements; i += element_stride()) {
    const std::int64_t row = i / row_size, head = i % row_size / size;
    const HeadRows rows = heads.query(row / heads.sizes.queries, head);
    to[rows.offset + row % heads.sizes.queries * rows.step + i % size] = from[i];
  }
}

}  // namespace

Lowering lower_attention_grad(const LowerContext& context) {
  const AttentionAttributes& a = context.op.as<AttentionGrad>().a;
  const std::vector<TensorType> types = context.input_types();
  const AttentionHeads heads{a, AttentionSizes(a, std::span(types).subspan(first_operand))};
  const AttentionSizes& sizes = heads.sizes;
  const std::int64_t rows = sizes.samples * sizes.heads * sizes.queries, elements = rows * a.head_size;
  const std::int64_t projections = workspace_section(rows * size_of(DType::float32));
  const std::int64_t bytes = projections + elements * size_of(context.input(0).dtype);
  return with_tile(context, a, [&](auto tile) {
    return with_type(context.input(0).dtype, [&](auto type) {
      using T = decltype(type);
      using Sizes = decltype(tile);
      const auto run = [=](const Buffers& p) {
        const std::size_t k = heads.a.packed != 0 ? 0 : 1, v = heads.a.packed != 0 ? 0 : 2;
        const GradientTensors<T> tensors{p.in<T>(0),
                                         p.in<T>(1),
                                         p.in<float>(2),
                                         p.in<T>(first_operand),
                                         p.in<T>(first_operand + k),
                                         p.in<T>(first_operand + v),
                                         p.workspace<float>(),
                                         p.workspace<T>(projections),
                                         p.out<T>(k),
                                         p.out<T>(v)};
        const AttentionCall call(heads, p, first_operand);
        const auto blocks = [&](std::int64_t positions, std::int64_t tile_rows, std::int64_t head_count) {
          return attention_blocks(divide_up(positions, tile_rows), head_count, heads.sizes.samples);
        };
        const AttentionSizes& of = heads.sizes;
        launch(project<T>, blocks(of.queries, team, of.heads), team * team, p.stream, call, tensors);
        launch(query_gradients<Sizes, T>, blocks(of.queries, Sizes::rows, of.heads), team * team, p.stream, call,
               tensors);
        launch(key_gradients<Sizes, T>, blocks(of.keys, Sizes::rows, of.key_heads), team * team, p.stream, call,
               tensors);
        launch(move_gradient<T>, blocks_for(elements), block_threads, p.stream, heads, elements, tensors.dq,
               p.out<T>(0));
      };
      return own_kernel(context, run, bytes);
    });
  });
}

}  // namespace trainctl::cuda
