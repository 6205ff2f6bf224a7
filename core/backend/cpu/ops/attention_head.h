// The inputs of attention ops on the CPU, hidden keys, dropout, and the memory of a thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/backend/cpu/lower.h"
#include "core/backend/cpu/ops/attention_products.h"
#include "core/backend/cpu/simd/dropping.h"
#include "core/backend/cpu/simd/math.h"
#include "core/graph/ops/attention_heads.h"

namespace trainctl::cpu {

inline constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// Sets the scores in columns [first, last) that the mask and the documents hide from query t to minus infinity;
// scores[0] belongs to key `key`.
inline void hide_by_inputs(const Visibility& visibility, std::int64_t t, std::int64_t key, std::int64_t first,
                           std::int64_t last, float* scores) {
  if (visibility.mask == nullptr && visibility.documents == nullptr) return;
  for (std::int64_t k = first; k < last; ++k) {
    if (!visibility.may_see(t, key + k)) scores[k] = minus_infinity;
  }
}

// Sets the scores of keys that query t does not see to minus infinity; scores[0] belongs to key `key`.
inline void hide(const Visibility& visibility, std::int64_t t, std::int64_t key, std::int64_t count, float* scores) {
  const std::int64_t first = visibility.first(t) - key, end = std::max<std::int64_t>(0, visibility.end(t) - key);
  for (std::int64_t k = 0; k < std::min(count, first); ++k) scores[k] = minus_infinity;
  for (std::int64_t k = end; k < count; ++k) scores[k] = minus_infinity;
  hide_by_inputs(visibility, t, key, 0, count, scores);
}

// The random numbers of an op's dropout in one run.
struct AttentionMask {
  RandomKey key;
  float rate = 0;
  std::uint64_t sample = 0;
  std::int64_t first_head = 0, queries = 0, keys = 0;

  // Drops the probabilities, or their gradients, of query t of a head for the keys [key, key + count).
  void drop(std::int64_t head, std::int64_t t, std::int64_t key_number, std::int64_t count, float* values) const {
    const std::int64_t element = ((first_head + head) * queries + t) * keys + key_number;
    drop_elements(key, sample, rate, values, values, element, count);
  }
};

// The inputs of an attention op besides q, k and v; `first` is the number of q among the inputs.
class AttentionConditions {
 public:
  AttentionConditions(const Buffers& buffers, const AttentionHeads& heads, std::size_t first) : heads_(heads) {
    const AttentionInputs inputs(heads.a);
    const AttentionDropout& dropout = heads.a.dropout;
    if (inputs.mask != 0) mask_ = buffers.in<std::uint8_t>(first + inputs.mask);
    if (inputs.documents != 0) documents_ = buffers.in<std::int32_t>(first + inputs.documents);
    if (inputs.starts != 0) starts_ = buffers.in<std::int32_t>(first + inputs.starts);
    if (inputs.samples == 0) return;
    samples_ = buffers.in<std::int64_t>(first + inputs.samples);
    const auto step = static_cast<std::uint32_t>(*buffers.in<std::int64_t>(first + inputs.step));
    key_ = RandomKey{dropout.seed, Purpose::dropout, step, dropout.layer};
  }

  Visibility visibility(std::int64_t sample) const {
    return {.mask = mask_ != nullptr ? mask_ + sample * heads_.sizes.keys : nullptr,
            .documents = documents_ != nullptr ? documents_ + sample * heads_.sizes.queries : nullptr,
            .causal = heads_.a.causal,
            .window = heads_.a.window,
            .keys = heads_.sizes.keys,
            .start = starts_ != nullptr ? starts_[sample] : 0};
  }
  bool drops() const { return samples_ != nullptr; }
  // Only if drops().
  AttentionMask mask(std::int64_t sample) const {
    const AttentionDropout& dropout = heads_.a.dropout;
    return {.key = key_,
            .rate = dropout.rate,
            .sample = static_cast<std::uint64_t>(samples_[sample]),
            .first_head = dropout.heads ? dropout.heads->first : 0,
            .queries = heads_.sizes.queries,
            .keys = heads_.sizes.keys};
  }

 private:
  const AttentionHeads& heads_;
  const std::uint8_t* mask_ = nullptr;
  const std::int32_t* documents_ = nullptr;
  const std::int32_t* starts_ = nullptr;
  const std::int64_t* samples_ = nullptr;
  RandomKey key_{};
};

// Takes arrays of floats one after the other from a thread's workspace, or only counts them if there is none.
class FloatArena {
 public:
  explicit FloatArena(float* memory) : memory_(memory) {}

  float* take(std::int64_t count) {
    float* const array = memory_ != nullptr ? memory_ + taken_ : nullptr;
    taken_ += whole_vectors(count);
    return array;
  }
  std::int64_t taken() const { return taken_; }

 private:
  float* memory_;
  std::int64_t taken_ = 0;
};

}  // namespace trainctl::cpu
