// Attention: a block computes a tile of queries of one head, with the softmax computed as the tiles of keys come (Dao
// et al., 2022).
#include "core/backend/cuda/ops/attention_tile.h"

namespace trainctl::cuda {
namespace {

// Blocks: (tiles of queries, heads, samples).
template <class Sizes, class T>
__global__ void attention(AttentionCall call, const T* q, const T* k, const T* v, T* y, float* log_sum_exp) {
  __shared__ float queries[Sizes::rows * Sizes::stride], keys[Sizes::rows * Sizes::stride];
  __shared__ float probabilities[Sizes::rows * (Sizes::rows + 1)];
  const AttentionAttributes& a = call.heads.a;
  const AttentionSizes& sizes = call.heads.sizes;
  const AttentionBlock block(divide_up(sizes.queries, Sizes::rows), sizes.heads);
  const std::int64_t sample = block.sample, head = block.head, key_head = head / sizes.group();
  const std::int64_t first = block.tile * Sizes::rows;
  const Visibility visibility = call.visibility(sample);
  fetch<Sizes>(q, call.heads.query(sample, head), first, sizes.queries, a.head_size, queries);
  float sums[Sizes::per_thread][Sizes::columns] = {}, largest[Sizes::per_thread], denominator[Sizes::per_thread] = {};
  for (float& each : largest) each = -INFINITY;
  const std::int64_t last = min(first + Sizes::rows, sizes.queries) - 1;
  for (std::int64_t key = visibility.first(first) / Sizes::rows * Sizes::rows; key < visibility.end(last);
       key += Sizes::rows) {
    __syncthreads();  // earlier values and probabilities may still be read
    fetch<Sizes>(k, call.heads.key(sample, key_head), key, sizes.keys, a.head_size, keys);
    __syncthreads();
    float scores[Sizes::per_thread][Sizes::per_thread];
    multiply_rows<Sizes>(queries, keys, a.head_size, a.scale, scores);
#pragma unroll
    for (int i = 0; i < Sizes::per_thread; ++i) {
      const int row = thread_y() * Sizes::per_thread + i;
      const std::int64_t t = min(first + row, sizes.queries - 1), begin = visibility.first(t), end = visibility.end(t);
      float most = largest[i];
#pragma unroll
      for (int j = 0; j < Sizes::per_thread; ++j) {
        const std::int64_t s = key + thread_x() + team * j;
        if (s < begin || s >= end || !visibility.may_see(t, s)) scores[i][j] = -INFINITY;
        most = fmaxf(most, scores[i][j]);
      }
      most = join_row(most, [](float one, float two) { return fmaxf(one, two); });
      const float shift = most > -INFINITY ? most : 0.0f;
      const float factor = largest[i] > -INFINITY ? expf(largest[i] - shift) : 0.0f;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < Sizes::per_thread; ++j) {
        const float probability = scores[i][j] == -INFINITY ? 0.0f : expf(scores[i][j] - shift);
        sum += probability;
        const int column = thread_x() + team * j;
        probabilities[row * (Sizes::rows + 1) + column] =
            probability == 0.0f ? 0.0f : probability * call.dropout_factor(sample, head, t, key + column);
      }
      sum = sum_of_row(sum);
      denominator[i] = denominator[i] * factor + sum;
      largest[i] = most;
#pragma unroll
      for (int j = 0; j < Sizes::columns; ++j) sums[i][j] *= factor;
    }
    __syncthreads();  // the keys have been read
    fetch<Sizes>(v, call.heads.value(sample, key_head), key, sizes.keys, a.value_size, keys);
    __syncthreads();
    add_products<Sizes>([&](int row, int s) { return probabilities[row * (Sizes::rows + 1) + s]; }, keys, sums);
  }
  put<Sizes>(
      sums, [&](int i) { return denominator[i] == 0.0f ? 0.0f : 1.0f / denominator[i]; }, y,
      call.heads.result(sample, head), first, sizes.queries, a.value_size);
  for (int i = 0; thread_x() == 0 && i < Sizes::per_thread; ++i) {
    const std::int64_t t = first + thread_y() * Sizes::per_thread + i;
    if (t >= sizes.queries) break;
    log_sum_exp[call.heads.sums(sample, head) + t] = denominator[i] == 0.0f ? 0.0f : largest[i] + logf(denominator[i]);
  }
}

}  // namespace

Lowering lower_attention(const LowerContext& context) {
  const AttentionAttributes& a = context.op.as<Attention>().a;
  const AttentionHeads heads{a, AttentionSizes(a, context.input_types())};
  return with_tile(context, a, [&](auto tile) {
    return with_type(context.input(0).dtype, [&](auto type) {
      using T = decltype(type);
      using Sizes = decltype(tile);
      return own_kernel(context, [heads](const Buffers& p) {
        const bool packed = heads.a.packed != 0;
        const AttentionSizes& of = heads.sizes;
        const dim3 blocks = attention_blocks(divide_up(of.queries, Sizes::rows), of.heads, of.samples);
        launch(attention<Sizes, T>, blocks, team * team, p.stream, AttentionCall(heads, p, 0), p.in<T>(0),
               p.in<T>(packed ? 0 : 1), p.in<T>(packed ? 0 : 2), p.out<T>(0), p.out<float>(1));
      });
    });
  });
}

}  // namespace trainctl::cuda
