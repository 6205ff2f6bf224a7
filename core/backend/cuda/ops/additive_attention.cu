// Additive attention and its gradient. A block computes one query, or in the gradient also one key: its threads compute
// the scores of a chunk of pairs, then each thread adds the chunk's terms of one column. Scores are computed again for
// each pass and for each 256 columns.
#include "core/graph/ops/additive_attention.h"

#include <cfloat>
#include <cmath>

#include "core/backend/cuda/device/column_sums.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/ops/attention_tile.h"

namespace trainctl::cuda {
namespace {

constexpr std::size_t additive_operand = 2;  // of the gradient, after dy and log_sum_exp

// The inputs of the op; `first` is the number of q among them.
template <class T>
struct AdditiveCall {
  AttentionCall attention;
  const T *q, *k, *v;
  ScoreWeights weights;

  AdditiveCall(const AttentionHeads& heads, const Buffers& p, std::size_t first, bool weighted, bool one)
      : attention(heads, p, first), q(p.in<T>(first)), k(p.in<T>(first + 1)), v(p.in<T>(first + 2)) {
    if (weighted) weights = {p.in<float>(first + AttentionInputs(heads.a).count), one};
  }

  __device__ const AttentionSizes& sizes() const { return attention.heads.sizes; }
  __device__ std::int64_t size() const { return attention.heads.a.head_size; }
  __device__ std::int64_t width() const { return attention.heads.a.value_size; }
  __device__ const T* query(std::int64_t n, std::int64_t t) const { return q + (n * sizes().queries + t) * size(); }
  __device__ const T* key(std::int64_t n, std::int64_t s) const { return k + (n * sizes().keys + s) * size(); }
  __device__ const T* value(std::int64_t n, std::int64_t s) const { return v + (n * sizes().keys + s) * width(); }

  // The score of query t and key s; -FLT_MAX if the query does not see the key.
  __device__ float score(const Visibility& visibility, std::int64_t n, std::int64_t t, std::int64_t s) const {
    if (s >= visibility.end(t) || !visibility.may_see(t, s)) return -FLT_MAX;
    const T *own = query(n, t), *other = key(n, s);
    float sum = 0;
    for (std::int64_t e = 0; e < size(); ++e) sum += weights.of(e) * tanhf(load(own[e]) + load(other[e]));
    return sum;
  }
};

__device__ float probability(float score, float log_sum) { return score == -FLT_MAX ? 0.0f : expf(score - log_sum); }

// The largest value of the threads of a block, returned to all threads. `shared` has 32 values.
__device__ float block_largest(float value, float* shared) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  const int warps = (static_cast<int>(blockDim.x) + 31) / 32;
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  float largest = shared[0];
  for (int i = 1; i < warps; ++i) largest = fmaxf(largest, shared[i]);
  return largest;
}

template <class T>
__device__ float value_product(const T* x, const T* y, std::int64_t count) {
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += load(x[i]) * load(y[i]);
  return sum;
}

// The logarithm of the denominator of query t's softmax; 0 if the query sees no key.
template <class T>
__device__ float log_sum_of(const AdditiveCall<T>& call, const Visibility& visibility, std::int64_t n, std::int64_t t,
                            float* shared) {
  float largest = -FLT_MAX, sum = 0;
  for (std::int64_t s = threadIdx.x; s < call.sizes().keys; s += block_threads) {
    const float score = call.score(visibility, n, t, s);
    if (score == -FLT_MAX) continue;
    const float now = fmaxf(largest, score);
    sum = (largest == -FLT_MAX ? 0.0f : sum * expf(largest - now)) + expf(score - now);
    largest = now;
  }
  const float most = block_largest(largest, shared);
  const float total = block_sum(largest == -FLT_MAX ? 0.0f : sum * expf(largest - most), shared);
  return total == 0 ? 0.0f : most + logf(total);
}

// Grid: queries of all samples.
template <class T>
__global__ void attend_additively(AdditiveCall<T> call, T* y, float* log_sums) {
  __shared__ float probabilities[block_threads], shared[32];
  const std::int64_t row = blockIdx.x, n = row / call.sizes().queries, t = row % call.sizes().queries;
  const Visibility visibility = call.attention.visibility(n);
  const float log_sum = log_sum_of(call, visibility, n, t, shared);
  if (threadIdx.x == 0) log_sums[row] = log_sum;
  for (std::int64_t first_column = 0; first_column < call.width(); first_column += block_threads) {
    const std::int64_t column = first_column + threadIdx.x;
    float sum = 0;
    for (std::int64_t first = 0; first < call.sizes().keys; first += block_threads) {
      const std::int64_t own = first + threadIdx.x;
      __syncthreads();
      probabilities[threadIdx.x] = own < call.sizes().keys ? probability(call.score(visibility, n, t, own), log_sum) *
                                                                 call.attention.dropout_factor(n, 0, t, own)
                                                           : 0.0f;
      __syncthreads();
      const std::int64_t end = min(first + block_threads, call.sizes().keys);
      for (std::int64_t s = first; column < call.width() && s < end; ++s) {
        sum += probabilities[s - first] * load(call.value(n, s)[column]);
      }
    }
    if (column < call.width()) y[row * call.width() + column] = store<T>(sum);
  }
}

// The tensors of the gradient besides the inputs of the op.
template <class T>
struct AdditiveGradients {
  const T* dy;
  const float* log_sums;
  float *projections, *terms;  // [samples, queries]; of dweights [samples, queries, size], null without weights
  T *dq, *dk, *dv;
};

// The probability of query t and key s, and its gradient; dropout's factor is in neither.
struct PairGradient {
  float probability, gradient, factor;
};

template <class T>
__device__ PairGradient pair_gradient(const AdditiveCall<T>& call, const AdditiveGradients<T>& g,
                                      const Visibility& visibility, std::int64_t n, std::int64_t t, std::int64_t s) {
  const std::int64_t row = n * call.sizes().queries + t;
  const float score = call.score(visibility, n, t, s);
  if (score == -FLT_MAX) return {0, 0, 0};
  const float factor = call.attention.dropout_factor(n, 0, t, s);
  const float gradient = value_product(g.dy + row * call.width(), call.value(n, s), call.width());
  return {probability(score, g.log_sums[row]), gradient * factor, factor};
}

// dq, the projections, and the terms of dweights. Grid: queries of all samples.
template <class T>
__global__ void additive_query_gradients(AdditiveCall<T> call, AdditiveGradients<T> g) {
  __shared__ float gradients[block_threads], shared[32];
  const std::int64_t row = blockIdx.x, n = row / call.sizes().queries, t = row % call.sizes().queries;
  const Visibility visibility = call.attention.visibility(n);
  float share = 0, total = 0;  // the rounded sum of the probabilities may differ from 1
  for (std::int64_t key = threadIdx.x; key < call.sizes().keys; key += block_threads) {
    const PairGradient pair = pair_gradient(call, g, visibility, n, t, key);
    share += pair.probability * pair.gradient;
    total += pair.probability;
  }
  const float sum = block_sum(share, shared), all = block_sum(total, shared);
  const float projection = all == 0 ? 0.0f : sum / all;
  if (threadIdx.x == 0) g.projections[row] = projection;
  for (std::int64_t first_column = 0; first_column < call.size(); first_column += block_threads) {
    const std::int64_t e = first_column + threadIdx.x;
    const bool inside = e < call.size();
    const float own_value = inside ? load(call.query(n, t)[e]) : 0.0f, weight = inside ? call.weights.of(e) : 0.0f;
    float dq = 0, term = 0;
    for (std::int64_t first = 0; first < call.sizes().keys; first += block_threads) {
      const std::int64_t own = first + threadIdx.x;
      __syncthreads();
      if (own < call.sizes().keys) {
        const PairGradient pair = pair_gradient(call, g, visibility, n, t, own);
        gradients[threadIdx.x] = pair.probability * (pair.gradient - projection);
      }
      __syncthreads();
      const std::int64_t end = min(first + block_threads, call.sizes().keys);
      for (std::int64_t s = first; inside && s < end; ++s) {
        const float tangent = tanhf(own_value + load(call.key(n, s)[e])), gradient = gradients[s - first];
        dq += gradient * weight * (1.0f - tangent * tangent);
        term += gradient * tangent;
      }
    }
    if (!inside) continue;
    g.dq[row * call.size() + e] = store<T>(dq);
    if (g.terms != nullptr) g.terms[row * call.size() + e] = term;
  }
}

// dk and dv, after additive_query_gradients(). Grid: keys of all samples.
template <class T>
__global__ void additive_key_gradients(AdditiveCall<T> call, AdditiveGradients<T> g) {
  __shared__ float scores[block_threads], probabilities[block_threads];
  const std::int64_t row = blockIdx.x, n = row / call.sizes().keys, s = row % call.sizes().keys;
  const std::int64_t size = call.size(), width = call.width(), queries = call.sizes().queries;
  const Visibility visibility = call.attention.visibility(n);
  for (std::int64_t first_column = 0; first_column < max(size, width); first_column += block_threads) {
    const std::int64_t column = first_column + threadIdx.x;
    const float own_value = column < size ? load(call.key(n, s)[column]) : 0.0f;
    const float weight = column < size ? call.weights.of(column) : 0.0f;
    float dk = 0, dv = 0;
    for (std::int64_t first = 0; first < queries; first += block_threads) {
      const std::int64_t own = first + threadIdx.x;
      __syncthreads();
      if (own < queries) {
        const PairGradient pair = pair_gradient(call, g, visibility, n, own, s);
        scores[threadIdx.x] = pair.probability * (pair.gradient - g.projections[n * queries + own]);
        probabilities[threadIdx.x] = pair.probability * pair.factor;
      }
      __syncthreads();
      const std::int64_t end = min(first + block_threads, queries);
      for (std::int64_t t = first; t < end; ++t) {
        if (column < size) {
          const float tangent = tanhf(load(call.query(n, t)[column]) + own_value);
          dk += scores[t - first] * weight * (1.0f - tangent * tangent);
        }
        if (column < width) dv += probabilities[t - first] * load(g.dy[(n * queries + t) * width + column]);
      }
    }
    if (column < size) g.dk[row * size + column] = store<T>(dk);
    if (column < width) g.dv[row * width + column] = store<T>(dv);
  }
}

}  // namespace

Lowering lower_additive_attention(const LowerContext& context) {
  const auto& def = context.op.as<AdditiveAttention>();
  const std::vector<TensorType> types = context.input_types();
  const AttentionHeads heads{def.a, AttentionSizes(def.a, types)};
  const bool one = types.back().shape.count() == 1;
  const std::int64_t rows = heads.sizes.samples * heads.sizes.queries;
  return with_type(context.input(0).dtype, [&, weighted = def.weighted](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      const AdditiveCall<T> call(heads, p, 0, weighted, one);
      launch(attend_additively<T>, static_cast<unsigned>(rows), block_threads, p.stream, call, p.out<T>(0),
             p.out<float>(1));
    });
  });
}

Lowering lower_additive_attention_grad(const LowerContext& context) {
  const auto& def = context.op.as<AdditiveAttentionGrad>();
  const std::vector<TensorType> types = context.input_types();
  const AttentionHeads heads{def.a, AttentionSizes(def.a, std::span(types).subspan(additive_operand))};
  const bool one = types.back().shape.count() == 1, weighted = def.weighted, accumulate = def.accumulate;
  const std::int64_t rows = heads.sizes.samples * heads.sizes.queries, elements = rows * def.a.head_size;
  // The terms are a matrix whose columns are added; with one weight, it has one column.
  const ColumnSums sums(DType::float32, one ? elements : rows, one ? 1 : def.a.head_size);
  const std::int64_t terms = workspace_section(rows * size_of(DType::float32));
  const std::int64_t partial = terms + (weighted ? workspace_section(elements * size_of(DType::float32)) : 0);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    const auto run = [=](const Buffers& p) {
      const AdditiveCall<T> call(heads, p, additive_operand, weighted, one);
      const AdditiveGradients<T> g{
          p.in<T>(0),  p.in<float>(1), p.workspace<float>(), weighted ? p.workspace<float>(terms) : nullptr,
          p.out<T>(0), p.out<T>(1),    p.out<T>(2)};
      launch(additive_query_gradients<T>, static_cast<unsigned>(rows), block_threads, p.stream, call, g);
      launch(additive_key_gradients<T>, static_cast<unsigned>(heads.sizes.samples * heads.sizes.keys), block_threads,
             p.stream, call, g);
      if (weighted) {
        sums.run(g.terms, accumulate, p.out<float>(3), p.workspace<void>(partial), p.stream);
      }
    };
    return own_kernel(context, run, partial + (weighted ? sums.workspace_bytes() : 0));
  });
}

}  // namespace trainctl::cuda
