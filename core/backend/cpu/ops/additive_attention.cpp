// Additive attention and its gradient: a thread computes whole queries, or in the gradient whole samples, whose scores
// it computes again.
#include "core/graph/ops/additive_attention.h"

#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/attention_head.h"

namespace trainctl::cpu {
namespace {

constexpr std::size_t additive_operand = 2;  // of the gradient, after dy and log_sum_exp

// The inputs of the op; `first` is the number of q among them.
template <class T>
struct AdditiveInputs {
  const AttentionHeads& heads;
  const T *q, *k, *v;
  ScoreWeights weights;
  AttentionConditions conditions;

  AdditiveInputs(const Buffers& buffers, const AttentionHeads& h, std::size_t first, bool weighted, bool one)
      : heads(h),
        q(buffers.in<T>(first)),
        k(buffers.in<T>(first + 1)),
        v(buffers.in<T>(first + 2)),
        conditions(buffers, h, first) {
    if (weighted) weights = {buffers.in<float>(first + AttentionInputs(h.a).count), one};
  }

  const T* query(std::int64_t n, std::int64_t t) const { return q + (n * heads.sizes.queries + t) * heads.a.head_size; }
  const T* key(std::int64_t n, std::int64_t s) const { return k + (n * heads.sizes.keys + s) * heads.a.head_size; }
  const T* value(std::int64_t n, std::int64_t s) const { return v + (n * heads.sizes.keys + s) * heads.a.value_size; }

  // Writes the scores of query t for all keys; minus infinity for those that it does not see. If `tangents` is not
  // null, it gets the tangents [keys, head_size].
  void score(std::int64_t n, std::int64_t t, float* scores, float* tangents) const {
    const std::int64_t size = heads.a.head_size, keys = heads.sizes.keys;
    const T* const own = query(n, t);
    simd([=, this]() TRAINCTL_INLINE {
      for (std::int64_t s = 0; s < keys; ++s) {
        const T* const other = key(n, s);
        const ScoreWeights w = weights;
        if (tangents == nullptr) {
          const auto term = [=](std::int64_t e)
                                TRAINCTL_INLINE { return w.of(e) * tanh_approx(load(own[e]) + load(other[e])); };
          scores[s] = lane_sum<float>(size, term);
          continue;
        }
        float* const row = tangents + s * size;
#pragma omp simd
        for (std::int64_t e = 0; e < size; ++e) row[e] = tanh_approx(load(own[e]) + load(other[e]));
        const auto term = [=](std::int64_t e) TRAINCTL_INLINE { return w.of(e) * row[e]; };
        scores[s] = lane_sum<float>(size, term);
      }
    });
    hide(conditions.visibility(n), t, 0, keys, scores);
  }
};

// Replaces scores by the exponentials of their differences from `shift`; 0 for hidden keys.
void exponentials_of(float* scores, std::int64_t count, float shift) {
  simd([=]() TRAINCTL_INLINE {
#pragma omp simd
    for (std::int64_t s = 0; s < count; ++s) {
      scores[s] = scores[s] == minus_infinity ? 0.0f : exp_approx(scores[s] - shift);
    }
  });
}

// y += factor * x for n values.
template <class T>
void add_scaled(float factor, const T* x, std::int64_t n, float* y) {
  simd([=]() TRAINCTL_INLINE {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] += factor * load(x[i]);
  });
}

template <class T>
float value_product(const T* x, const T* y, std::int64_t n) {
  float sum = 0;
  simd([&]() TRAINCTL_INLINE {
    const auto term = [=](std::int64_t i) TRAINCTL_INLINE { return load(x[i]) * load(y[i]); };
    sum = lane_sum<float>(n, term);
  });
  return sum;
}

// Computes query t of sample n. `scratch` has a float for each key, and then one for each value of v.
template <class T>
void attend_additively(const AdditiveInputs<T>& in, std::int64_t n, std::int64_t t, float* scratch, T* y,
                       float* log_sum) {
  const std::int64_t keys = in.heads.sizes.keys, width = in.heads.a.value_size;
  float *const scores = scratch, *const sums = scratch + whole_vectors(keys);
  in.score(n, t, scores, nullptr);
  const float largest = *std::max_element(scores, scores + keys);
  std::fill_n(sums, width, 0.0f);
  *log_sum = 0;
  if (largest > minus_infinity) {
    exponentials_of(scores, keys, largest);
    double sum = 0;
    for (std::int64_t s = 0; s < keys; ++s) sum += scores[s];
    const auto total = static_cast<float>(sum);
    *log_sum = largest + std::log(total);
    if (in.conditions.drops()) in.conditions.mask(n).drop(0, t, 0, keys, scores);
    for (std::int64_t s = 0; s < keys; ++s) {
      if (scores[s] != 0) add_scaled(scores[s] / total, in.value(n, s), width, sums);
    }
  }
  for (std::int64_t i = 0; i < width; ++i) y[i] = store<T>(sums[i]);
}

// The memory of a thread that computes the gradients of a sample.
struct SampleScratch {
  float *tangents, *probabilities, *gradients, *dq, *dweights, *dk, *dv;
  std::int64_t count;

  SampleScratch(const AttentionHeads& heads, float* memory) {
    const std::int64_t keys = heads.sizes.keys, size = heads.a.head_size;
    FloatArena arena(memory);
    tangents = arena.take(keys * size);
    probabilities = arena.take(keys);
    gradients = arena.take(keys);
    dq = arena.take(size);
    dweights = arena.take(size);
    dk = arena.take(keys * size);
    dv = arena.take(keys * heads.a.value_size);
    count = arena.taken();
  }
};

template <class T>
class SampleGradient {
 public:
  SampleGradient(const Buffers& buffers, const AttentionHeads& heads, bool weighted, bool one, float* memory)
      : buffers_(buffers), heads_(heads), in_(buffers, heads, additive_operand, weighted, one), s_(heads, memory) {}

  // Writes dq, dk and dv of sample n, and its terms of the gradients of the weights to `dweights`.
  void run(std::int64_t n, float* dweights) {
    const std::int64_t keys = heads_.sizes.keys, size = heads_.a.head_size, width = heads_.a.value_size;
    std::fill_n(s_.dk, keys * size, 0.0f);
    std::fill_n(s_.dv, keys * width, 0.0f);
    std::fill_n(dweights, size, 0.0f);
    for (std::int64_t t = 0; t < heads_.sizes.queries; ++t) add_query(n, t, dweights);
    put(s_.dk, keys * size, buffers_.out<T>(1) + n * keys * size);
    put(s_.dv, keys * width, buffers_.out<T>(2) + n * keys * width);
  }

 private:
  static void put(const float* from, std::int64_t count, T* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = store<T>(from[i]);
  }

  void add_query(std::int64_t n, std::int64_t t, float* dweights) {
    const std::int64_t keys = heads_.sizes.keys, size = heads_.a.head_size, width = heads_.a.value_size;
    const std::int64_t row = n * heads_.sizes.queries + t;
    const T* dy = buffers_.in<T>(0) + row * width;
    in_.score(n, t, s_.probabilities, s_.tangents);
    exponentials_of(s_.probabilities, keys, buffers_.in<float>(1)[row]);
    for (std::int64_t s = 0; s < keys; ++s) s_.gradients[s] = value_product(dy, in_.value(n, s), width);
    if (in_.conditions.drops()) in_.conditions.mask(n).drop(0, t, 0, keys, s_.gradients);
    const auto mean = static_cast<float>(mean_gradient());
    for (std::int64_t s = 0; s < keys; ++s) s_.gradients[s] = s_.probabilities[s] * (s_.gradients[s] - mean);
    if (in_.conditions.drops()) in_.conditions.mask(n).drop(0, t, 0, keys, s_.probabilities);
    std::fill_n(s_.dq, size, 0.0f);
    std::fill_n(s_.dweights, size, 0.0f);
    for (std::int64_t s = 0; s < keys; ++s) {
      if (s_.probabilities[s] != 0) add_scaled(s_.probabilities[s], dy, width, s_.dv + s * width);
      if (s_.gradients[s] != 0) add_key(s);
    }
    add_scaled(1.0f, s_.dweights, size, dweights);
    put(s_.dq, size, buffers_.out<T>(0) + row * size);
  }

  // The mean of the probabilities' gradients under the probabilities, whose rounded sum may differ from 1.
  double mean_gradient() const {
    double sum = 0, total = 0;
    for (std::int64_t s = 0; s < heads_.sizes.keys; ++s) {
      sum += static_cast<double>(s_.probabilities[s]) * s_.gradients[s];
      total += s_.probabilities[s];
    }
    return total == 0 ? 0 : sum / total;
  }

  // Adds the terms of key s of the present query.
  void add_key(std::int64_t s) {
    const std::int64_t size = heads_.a.head_size;
    const float gradient = s_.gradients[s];
    const ScoreWeights weights = in_.weights;
    const float* const tangents = s_.tangents + s * size;
    float *const dq = s_.dq, *const dk = s_.dk + s * size, *const dweights = s_.dweights;
    simd([=]() TRAINCTL_INLINE {
#pragma omp simd
      for (std::int64_t e = 0; e < size; ++e) {
        const float slope = gradient * weights.of(e) * (1.0f - tangents[e] * tangents[e]);
        dq[e] += slope;
        dk[e] += slope;
        dweights[e] += gradient * tangents[e];
      }
    });
  }

  const Buffers& buffers_;
  const AttentionHeads& heads_;
  AdditiveInputs<T> in_;
  SampleScratch s_;
};

// Calls work(item, scratch) for all items, which are shared among the threads; each has `floats` of the workspace.
template <class Work>
void each_item(std::int64_t items, int threads, float* workspace, std::int64_t floats, const Work& work) {
  parallel_ranges(threads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t share = begin; share < end; ++share) {
      for (std::int64_t i = items * share / threads; i < items * (share + 1) / threads; ++i) {
        work(i, workspace + share * floats);
      }
    }
  });
}

// dweights (+)= the sum of the samples' terms [samples, size]; of all of them if there is one weight.
void join_samples(const float* terms, std::int64_t samples, std::int64_t size, bool one, bool accumulate,
                  float* dweights) {
  const std::int64_t count = one ? 1 : size, each = one ? size : 1;
  for (std::int64_t e = 0; e < count; ++e) {
    double sum = accumulate ? dweights[e] : 0.0;
    for (std::int64_t n = 0; n < samples; ++n) {
      for (std::int64_t i = 0; i < each; ++i) sum += terms[n * size + e * each + i];
    }
    dweights[e] = static_cast<float>(sum);
  }
}

}  // namespace

Lowering lower_additive_attention(const LowerContext& context) {
  const auto& def = context.op.as<AdditiveAttention>();
  const std::vector<TensorType> types = context.input_types();
  const AttentionHeads heads{def.a, AttentionSizes(def.a, types)};
  const bool one = types.back().shape.count() == 1;
  const std::int64_t floats = whole_vectors(heads.sizes.keys) + whole_vectors(def.a.value_size);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    const auto run = [=, weighted = def.weighted, threads = context.threads](const Buffers& buffers) {
      const AdditiveInputs<T> in(buffers, heads, 0, weighted, one);
      const std::int64_t queries = heads.sizes.queries;
      each_item(heads.sizes.samples * queries, threads, buffers.workspace<float>(), floats,
                [&](std::int64_t row, float* scratch) {
                  attend_additively(in, row / queries, row % queries, scratch,
                                    buffers.out<T>(0) + row * heads.a.value_size, buffers.out<float>(1) + row);
                });
    };
    return own_kernel(context, run, context.threads * floats * size_of(DType::float32));
  });
}

Lowering lower_additive_attention_grad(const LowerContext& context) {
  const auto& def = context.op.as<AdditiveAttentionGrad>();
  const std::vector<TensorType> types = context.input_types();
  const AttentionHeads heads{def.a, AttentionSizes(def.a, std::span(types).subspan(additive_operand))};
  const bool one = types.back().shape.count() == 1;
  const std::int64_t floats = SampleScratch(heads, nullptr).count, size = def.a.head_size;
  const std::int64_t terms = whole_vectors(heads.sizes.samples * size);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    const auto run = [=, weighted = def.weighted, accumulate = def.accumulate,
                      threads = context.threads](const Buffers& buffers) {
      float* const sums = buffers.workspace<float>();
      each_item(heads.sizes.samples, threads, sums + terms, floats, [&](std::int64_t n, float* scratch) {
        SampleGradient<T>(buffers, heads, weighted, one, scratch).run(n, sums + n * size);
      });
      if (weighted) join_samples(sums, heads.sizes.samples, size, one, accumulate, buffers.out<float>(3));
    };
    return own_kernel(context, run, (terms + context.threads * floats) * size_of(DType::float32));
  });
}

}  // namespace trainctl::cpu
