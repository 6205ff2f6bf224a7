// Copies blocks of 16x16 channels, and transposes them, with AVX-512.
#include "core/backend/cpu/onednn/blocked_copy.h"

#include <algorithm>

#include "core/backend/cpu/simd/parallel.h"
#include "core/backend/cpu/simd/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TRAINCTL_AVX512 gnu::target("avx512f,avx512bw,avx512dq,avx512vl")
#endif

namespace trainctl::cpu {
namespace {

constexpr std::int64_t width = 16;  // channels of a block
constexpr std::int64_t block_values = width * width;

#if defined(__x86_64__)

// The mask of all values of a vector. gcc 12 warns of uninitialized values in the functions without masks.
constexpr __mmask16 all = 0xffff;

// The rows of a block.
using Rows = __m512[width];

[[TRAINCTL_AVX512]] inline __m512 low_pairs(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xff, _mm512_castps_pd(a), _mm512_castps_pd(b)));
}
[[TRAINCTL_AVX512]] inline __m512 high_pairs(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xff, _mm512_castps_pd(a), _mm512_castps_pd(b)));
}

[[TRAINCTL_AVX512]] inline void transpose(Rows& rows) {
  Rows other;
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    other[i] = _mm512_maskz_unpacklo_ps(all, rows[i], rows[i + 1]);
    other[i + 1] = _mm512_maskz_unpackhi_ps(all, rows[i], rows[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    rows[i] = low_pairs(other[i], other[i + 2]);
    rows[i + 1] = high_pairs(other[i], other[i + 2]);
    rows[i + 2] = low_pairs(other[i + 1], other[i + 3]);
    rows[i + 3] = high_pairs(other[i + 1], other[i + 3]);
  }
  // Now row 4 i + j holds the columns j, 4 + j, 8 + j and 12 + j of the rows 4 i to 4 i + 3.
  constexpr int even = 0x88, odd = 0xdd;
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    other[j] = _mm512_maskz_shuffle_f32x4(all, rows[j], rows[4 + j], even);
    other[4 + j] = _mm512_maskz_shuffle_f32x4(all, rows[j], rows[4 + j], odd);
    other[8 + j] = _mm512_maskz_shuffle_f32x4(all, rows[8 + j], rows[12 + j], even);
    other[12 + j] = _mm512_maskz_shuffle_f32x4(all, rows[8 + j], rows[12 + j], odd);
  }
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    rows[j] = _mm512_maskz_shuffle_f32x4(all, other[j], other[8 + j], even);
    rows[8 + j] = _mm512_maskz_shuffle_f32x4(all, other[j], other[8 + j], odd);
  }
}

// Copies a block whose rows are from_step and to_step values apart. `past_caches` requires that `to` is aligned to 64
// bytes.
template <bool transposed>
[[TRAINCTL_AVX512]] void copy_block(const float* from, std::int64_t from_step, float* to, std::int64_t to_step,
                                    bool accumulate, bool past_caches) {
  Rows rows;
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) rows[i] = _mm512_loadu_ps(from + i * from_step);
  if constexpr (transposed) transpose(rows);
  if (past_caches) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_stream_ps(to + i * to_step, rows[i]);
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    float* const target = to + i * to_step;
    _mm512_storeu_ps(target, accumulate ? _mm512_add_ps(_mm512_loadu_ps(target), rows[i]) : rows[i]);
  }
}

void finish_stores() { _mm_sfence(); }

#else

template <bool transposed>
void copy_block(const float*, std::int64_t, float*, std::int64_t, bool, bool) {}
void finish_stores() {}

#endif

bool is_logical(const onednn::Blocking& b) { return b.blocked && b.inner_blocks.empty() && b.strides[0] == 1; }
bool is_blocked(const onednn::Blocking& b) {
  return b.blocked && b.inner_blocks == onednn::Dims{width, width} &&
         (b.inner_indices == onednn::Dims{1, 0} || b.inner_indices == onednn::Dims{0, 1});
}

}  // namespace

std::optional<BlockedCopy> BlockedCopy::between(const onednn::memory::desc& from, const onednn::memory::desc& to) {
  const onednn::Blocking source = onednn::blocking(from), target = onednn::blocking(to);
  const onednn::Dims dims = onednn::dims(from);
  const auto is_float = [](const auto& desc) { return onednn::data_type(desc) == onednn::memory::data_type::f32; };
  const bool to_blocked = is_logical(source) && is_blocked(target);
  if (instruction_set() != InstructionSet::avx512 || !is_float(from) || !is_float(to) ||
      (!to_blocked && !(is_blocked(source) && is_logical(target))) || dims.size() < 3 || dims.size() > 5 ||
      dims[0] % width != 0 || dims[1] % width != 0) {
    return std::nullopt;
  }
  const onednn::Blocking &logical = to_blocked ? source : target, &blocked = to_blocked ? target : source;
  BlockedCopy copy;
  copy.positions_ = {{0, 0}};
  for (std::size_t axis = 2; axis < dims.size(); ++axis) {
    std::vector<Position> more;
    for (const Position& p : copy.positions_) {
      for (std::int64_t i = 0; i < dims[axis]; ++i) {
        more.push_back({p.logical + i * logical.strides[axis], p.blocked + i * blocked.strides[axis]});
      }
    }
    copy.positions_ = std::move(more);
  }
  copy.out_blocks_ = dims[0] / width;
  copy.in_blocks_ = dims[1] / width;
  copy.row_ = logical.strides[1];
  copy.out_step_ = blocked.strides[0];
  copy.in_step_ = blocked.strides[1];
  copy.to_blocked_ = to_blocked;
  copy.transposed_ = blocked.inner_indices == onednn::Dims{0, 1};
  return copy;
}

// Copies the blocks of 16 input channels and all output channels at a position of the window; rows count positions,
// then blocks of input channels.
void BlockedCopy::copy_row(const float* from, float* to, std::int64_t row, bool accumulate, bool past_caches) const {
  const Position& position = positions_[static_cast<std::size_t>(row / in_blocks_)];
  const std::int64_t in = row % in_blocks_;
  const auto copy = transposed_ ? &copy_block<true> : &copy_block<false>;
  for (std::int64_t out = 0; out < out_blocks_; ++out) {
    const std::int64_t logical = position.logical + in * width * row_ + out * width;
    const std::int64_t blocked = position.blocked + in * in_step_ + out * out_step_;
    if (to_blocked_) {
      copy(from + logical, row_, to + blocked, width, accumulate, past_caches);
    } else {
      copy(from + blocked, width, to + logical, row_, accumulate, past_caches);
    }
  }
}

void BlockedCopy::run(const float* from, float* to, bool accumulate) const {
  constexpr std::int64_t cached_values = 1 << 18;  // a larger result does not stay in the second cache
  const std::int64_t rows = in_blocks_ * static_cast<std::int64_t>(positions_.size());
  const bool past_caches = !accumulate && rows * out_blocks_ * block_values > cached_values &&
                           reinterpret_cast<std::uintptr_t>(to) % 64 == 0;
  const std::int64_t grain = std::max<std::int64_t>(1, element_grain / (out_blocks_ * block_values));
  parallel_ranges(rows, grain, [=, this](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) copy_row(from, to, row, accumulate, past_caches);
    if (past_caches) finish_stores();
  });
}

}  // namespace trainctl::cpu
