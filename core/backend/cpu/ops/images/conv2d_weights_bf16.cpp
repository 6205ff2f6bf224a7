// The gradient of a convolution with respect to its kernel in bfloat16: geometry, packing and tiles.
#include "core/backend/cpu/ops/images/conv2d_weights_bf16.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/backend/cpu/simd/parallel.h"
#include "core/backend/cpu/simd/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TRAINCTL_AVX512_BF16 gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#endif

namespace trainctl::cpu {
namespace {

constexpr std::int64_t vector = 16;                // number of channels of a packed vector, each with two positions
constexpr std::int64_t packed = 32;                // number of values of a packed vector
constexpr std::int64_t block = 64;                 // number of channels that are packed together
constexpr std::int64_t max_rows = 256;             // number of rows of dy that are packed together
constexpr std::int64_t packed_bytes = 320 * 1024;  // bytes of packed x and dy that fit into the caches
constexpr int tile_inputs = 8, tile_vectors = 3;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The offsets of a row of the sum in packed x and in packed dy.
struct RowPair {
  std::int64_t x, dy;
};

// A vector of 16 output channels: its packed dy, its sums, and the mask of the channels that exist.
struct Output {
  const Bf16* dy;
  float* sums;
  std::uint16_t mask;
};

// Memory that will be packed next, prefetched into the cache `step` bytes at a time while tiles are summed.
struct Prefetch {
  const Bf16* next;
  std::int64_t step;
};

// The arguments of sum_tile().
struct TileSum {
  const Bf16* x;  // the tile's first channel
  const Output* outputs;
  const RowPair* rows;
  std::int64_t row_count, pairs, sums_stride;
  std::array<Prefetch, 2>* prefetch;
};

#if defined(__x86_64__)

// Packs 16 channels of two positions; reads only the channels that are in the masks.
[[TRAINCTL_AVX512_BF16]] inline void pack_pair(const Bf16* first, const Bf16* second, std::uint16_t first_mask,
                                               std::uint16_t second_mask, Bf16* to) {
  alignas(64) static constexpr std::int16_t order[] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                       8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m256i even = _mm256_maskz_loadu_epi16(first_mask, first), odd = _mm256_maskz_loadu_epi16(second_mask, second);
  _mm512_store_si512(to, _mm512_permutex2var_epi16(_mm512_castsi256_si512(even), _mm512_load_si512(order),
                                                   _mm512_castsi256_si512(odd)));
}

// Packs 16 channels of `pairs` pairs of positions (first, first + 1), (first + 2, first + 3), ...; reads only the
// channels that are in the mask. Positions outside [0, count) become zeros. Consecutive positions are `step` values
// apart.
[[TRAINCTL_AVX512_BF16]] void pack_row(const Bf16* source, std::int64_t step, std::int64_t count, std::int64_t first,
                                       std::int64_t pairs, std::uint16_t mask, Bf16* to) {
  const auto mask_at = [&](std::int64_t position) {
    return position >= 0 && position < count ? mask : std::uint16_t{0};
  };
  for (std::int64_t position = first; position < first + 2 * pairs; position += 2, to += packed) {
    const Bf16* from = source + position * step;
    if (position >= 0 && position + 1 < count) {
      pack_pair(from, from + step, mask, mask, to);
    } else {
      pack_pair(from, from + step, mask_at(position), mask_at(position + 1), to);
    }
  }
}

[[TRAINCTL_AVX512_BF16]] inline void fetch(Prefetch& prefetch) {
  const auto* address = reinterpret_cast<const char*>(prefetch.next);
  for (std::int64_t i = 0; i < prefetch.step; i += 64) _mm_prefetch(address + i, _MM_HINT_T1);
  prefetch.next += prefetch.step / 2;
}

template <int inputs, int outputs>
[[TRAINCTL_AVX512_BF16]] void sum_tile(const TileSum& t) {
  __m512 sums[inputs][outputs];
#pragma GCC unroll 8
  for (int i = 0; i < inputs; ++i) {
#pragma GCC unroll 8
    for (int o = 0; o < outputs; ++o) {
      sums[i][o] = _mm512_maskz_loadu_ps(t.outputs[o].mask, t.outputs[o].sums + i * t.sums_stride);
    }
  }
  for (const RowPair* row = t.rows; row < t.rows + t.row_count; ++row) {
    for (Prefetch& prefetch : *t.prefetch) fetch(prefetch);
    const Bf16* x = t.x + row->x;
    const Bf16* dy[outputs];
    for (int o = 0; o < outputs; ++o) dy[o] = t.outputs[o].dy + row->dy;
    for (std::int64_t j = 0; j < t.pairs * packed; j += packed) {
      __m512bh gradients[outputs];
#pragma GCC unroll 8
      for (int o = 0; o < outputs; ++o) gradients[o] = (__m512bh)_mm512_load_si512(dy[o] + j);
#pragma GCC unroll 8
      for (int i = 0; i < inputs; ++i) {
        const auto pair = (__m512bh)_mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(x + j + 2 * i));
#pragma GCC unroll 8
        for (int o = 0; o < outputs; ++o) sums[i][o] = _mm512_dpbf16_ps(sums[i][o], gradients[o], pair);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < inputs; ++i) {
#pragma GCC unroll 8
    for (int o = 0; o < outputs; ++o) {
      _mm512_mask_storeu_ps(t.outputs[o].sums + i * t.sums_stride, t.outputs[o].mask, sums[i][o]);
    }
  }
}

template <int outputs, int... inputs>
constexpr auto tiles_of(std::integer_sequence<int, inputs...>) {
  return std::array{&sum_tile<inputs + 1, outputs>...};
}
using Inputs = std::make_integer_sequence<int, tile_inputs>;
constexpr std::array tiles{tiles_of<1>(Inputs{}), tiles_of<2>(Inputs{}), tiles_of<3>(Inputs{})};
static_assert(tiles.size() == tile_vectors);

void sum_tile(std::int64_t inputs, std::int64_t outputs, const TileSum& tile) {
  tiles[static_cast<std::size_t>(outputs - 1)][static_cast<std::size_t>(inputs - 1)](tile);
}

#else

void pack_row(const Bf16*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::uint16_t, Bf16*) {}
void sum_tile(std::int64_t, std::int64_t, const TileSum&) {}

#endif

// The mask of 16 channels from `first` on: a bit is set if the channel is below `channels`.
std::uint16_t existing(std::int64_t first, std::int64_t channels) {
  return static_cast<std::uint16_t>((1U << std::clamp<std::int64_t>(channels - first, 0, vector)) - 1U);
}

}  // namespace

// The work on a block of channels over some rows of dy.
struct Conv2dWeightsBf16::Task {
  const Bf16 *x, *dy;
  float* sums;
  Bf16 *packed_x,
      *packed_dy;  // [vector of C][slot][residue][pair], [pairing][vector of O][row][pair] of packed vectors
  std::int64_t first_in, in_vectors, first_out, out_vectors, first, last;
  std::array<Prefetch, 2> prefetch;  // prefetches of x and of dy
};

bool Conv2dWeightsBf16::available() {
#if defined(__x86_64__)
  return instruction_set() == InstructionSet::avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

Conv2dWeightsBf16::Conv2dWeightsBf16(const Window& window, const Shape& x, const Shape& y, int threads)
    : window_(window),
      in_rows_(x[1]),
      in_columns_(x[2]),
      in_(x[3]),
      out_rows_(y[1]),
      out_columns_(y[2]),
      out_(y[3]),
      rows_(y[0] * y[1]),
      threads_(threads) {
  const std::int64_t stride = window.strides[1];
  std::int64_t leftmost = INT64_MAX, rightmost = INT64_MIN;
  for (std::int64_t kw = 0; kw < window.size[1]; ++kw) {
    const std::int64_t offset = kw * window.dilation[1] - window.padding_before[1];
    const std::int64_t first = (offset % stride + stride) % stride, shift = (offset - first) / stride;
    auto residue = std::find_if(residues_.begin(), residues_.end(), [&](const Residue& r) { return r.first == first; });
    if (residue == residues_.end()) residue = residues_.insert(residue, {first, {}});
    residue->columns.push_back({kw, shift});
    leftmost = std::min(leftmost, -(shift >> 1));
    rightmost = std::max(rightmost, -(shift >> 1));
    if (shift & 1) pairings_ = 2;
  }
  pairs_ = divide_up(divide_up(in_columns_, stride), 2);
  first_dy_pair_ = leftmost;
  dy_pairs_ = pairs_ + rightmost - leftmost;

  in_blocks_ = divide_up(in_, block);
  out_blocks_ = divide_up(out_, block);
  const std::int64_t blocks = in_blocks_ * out_blocks_;
  row_ranges_ = std::min(rows_, threads / std::gcd<std::int64_t>(threads, blocks));

  image_slots_ = (out_rows_ - 1) * window.strides[0] + kernel_reach() + 1;
  is_read_.resize(static_cast<std::size_t>(image_slots_));
  for (std::int64_t y = 0; y < out_rows_; ++y) {
    for (std::int64_t kh = 0; kh < window.size[0]; ++kh) {
      const std::int64_t padded = y * window.strides[0] + kh * window.dilation[0];
      const std::int64_t row = padded - window.padding_before[0];
      is_read_[static_cast<std::size_t>(padded)] = row >= 0 && row < in_rows_;
    }
  }
  const std::int64_t x_vectors = std::min(divide_up(in_, vector), block / vector) * pairs_ *
                                 static_cast<std::int64_t>(residues_.size()),
                     dy_vectors = std::min(divide_up(out_, vector), block / vector) * dy_pairs_ * pairings_;
  const std::int64_t row_bytes = (x_vectors * window.strides[0] + dy_vectors) * packed * 2;
  chunk_rows_ = std::clamp<std::int64_t>(packed_bytes / row_bytes, 1, max_rows);
  chunk_rows_ = chunk_rows_ >= out_rows_ ? chunk_rows_ / out_rows_ * out_rows_
                                         : divide_up(out_rows_, divide_up(out_rows_, chunk_rows_));
  const std::int64_t crossings = divide_up(chunk_rows_ - 1, out_rows_);
  chunk_slots_ = (chunk_rows_ - 1) * window.strides[0] + kernel_reach() + 1 +
                 crossings * std::max<std::int64_t>(0, image_slots_ - out_rows_ * window.strides[0]);
}

std::int64_t Conv2dWeightsBf16::workspace_bytes() const {
  const std::int64_t partial = window_.size[0] * window_.size[1] * in_ * out_ * 4;
  return threads_ * (packed_x_bytes() + packed_dy_bytes()) + (row_ranges_ - 1) * partial;
}

std::int64_t Conv2dWeightsBf16::row_values() const {
  return static_cast<std::int64_t>(residues_.size()) * pairs_ * packed;
}

std::int64_t Conv2dWeightsBf16::packed_x_bytes() const {
  return std::min(divide_up(in_, vector), block / vector) * chunk_slots_ * row_values() * 2;
}

std::int64_t Conv2dWeightsBf16::packed_dy_bytes() const {
  return pairings_ * std::min(divide_up(out_, vector), block / vector) * chunk_rows_ * dy_pairs_ * packed * 2;
}

void Conv2dWeightsBf16::pack(const Task& task) const {
  const std::int64_t stride = window_.strides[1], slots = slot(task.last - 1) + kernel_reach() + 1 - slot(task.first);
  Bf16* to = task.packed_x;
  for (std::int64_t v = 0; v < task.in_vectors; ++v, to += (chunk_slots_ - slots) * row_values()) {
    const std::int64_t channel = task.first_in + v * vector;
    std::int64_t image = slot(task.first) / image_slots_, padded = slot(task.first) % image_slots_;
    for (std::int64_t s = 0; s < slots; ++s, to += row_values()) {
      if (is_read_[static_cast<std::size_t>(padded)]) {
        const std::int64_t row = image * in_rows_ + padded - window_.padding_before[0];
        const Bf16* from = task.x + row * in_columns_ * in_ + channel;
        for (std::size_t r = 0; r < residues_.size(); ++r) {
          const std::int64_t first = residues_[r].first, count = divide_up(in_columns_ - first, stride);
          pack_row(from + first * in_, stride * in_, count, 0, pairs_, existing(channel, in_),
                   to + static_cast<std::int64_t>(r) * pairs_ * packed);
        }
      }
      if (++padded == image_slots_) {
        padded = 0;
        ++image;
      }
    }
  }
  to = task.packed_dy;
  for (std::int64_t odd = 0; odd < pairings_; ++odd) {
    for (std::int64_t v = 0; v < task.out_vectors; ++v) {
      const std::int64_t channel = task.first_out + v * vector;
      for (std::int64_t row = task.first; row < task.first + chunk_rows_; ++row, to += dy_pairs_ * packed) {
        if (row >= task.last) continue;
        pack_row(task.dy + row * out_columns_ * out_ + channel, out_, out_columns_, 2 * first_dy_pair_ - odd, dy_pairs_,
                 existing(channel, out_), to);
      }
    }
  }
}

void Conv2dWeightsBf16::fetch_next(Task& task, std::int64_t end) const {
  const std::int64_t rows = std::min(chunk_rows_, end - task.last), x_row = in_columns_ * in_,
                     dy_row = out_columns_ * out_;
  if (rows <= 0 || in_blocks_ * out_blocks_ > 1) {
    task.prefetch = {};
    return;
  }
  std::int64_t tiles = 0;
  for (const Residue& residue : residues_) {
    tiles += divide_up(static_cast<std::int64_t>(residue.columns.size()) * task.out_vectors, tile_vectors);
  }
  const std::int64_t steps = tiles * window_.size[0] * divide_up(in_, tile_inputs) * (task.last - task.first);
  const auto step = [&](std::int64_t values) { return divide_up(values * 2, steps * 64) * 64; };
  const std::int64_t image = task.last / out_rows_, y = task.last % out_rows_;
  task.prefetch = {
      Prefetch{task.x + (image * in_rows_ + y * window_.strides[0]) * x_row, step(rows * window_.strides[0] * x_row)},
      Prefetch{task.dy + task.last * dy_row, step(rows * dy_row)}};
}

void Conv2dWeightsBf16::sum(Task& task, std::int64_t kernel_row) const {
  std::array<RowPair, max_rows> rows;
  std::int64_t row_count = 0, y = task.first % out_rows_, slot_offset = 0;
  for (std::int64_t row = 0; row < task.last - task.first; ++row) {
    const std::int64_t reach = kernel_row * window_.dilation[0];
    const std::int64_t in_row = y * window_.strides[0] + reach - window_.padding_before[0];
    if (in_row >= 0 && in_row < in_rows_) {
      rows[static_cast<std::size_t>(row_count++)] = {(slot_offset + reach) * row_values(), row * dy_pairs_ * packed};
    }
    const bool next_image = ++y == out_rows_;
    slot_offset += next_image ? image_slots_ - (out_rows_ - 1) * window_.strides[0] : window_.strides[0];
    if (next_image) y = 0;
  }
  for (std::size_t r = 0; r < residues_.size(); ++r) {
    const std::vector<Column>& columns = residues_[r].columns;
    const std::int64_t vectors = static_cast<std::int64_t>(columns.size()) * task.out_vectors;
    const std::int64_t groups = divide_up(vectors, tile_vectors);
    for (std::int64_t group = 0; group < groups; ++group) {
      // The vectors of the group; their sums begin with the tile's first channel.
      const std::int64_t first = vectors * group / groups, last = vectors * (group + 1) / groups;
      std::array<Output, tile_vectors> outputs;
      for (std::int64_t i = first; i < last; ++i) {
        const Column& column = columns[static_cast<std::size_t>(i / task.out_vectors)];
        const std::int64_t v = i % task.out_vectors, channel = task.first_out + v * vector;
        const std::int64_t pair = -(column.shift >> 1) - first_dy_pair_;
        outputs[static_cast<std::size_t>(i - first)] = {
            task.packed_dy + (((column.shift & 1) * task.out_vectors + v) * chunk_rows_ * dy_pairs_ + pair) * packed,
            task.sums + ((kernel_row * window_.size[1] + column.kw) * in_ + task.first_in) * out_ + channel,
            existing(channel, out_)};
      }
      const std::int64_t end = std::min(in_, task.first_in + task.in_vectors * vector);
      for (std::int64_t in = task.first_in; in < end; in += tile_inputs) {
        const std::int64_t within = in - task.first_in;
        const Bf16* x = task.packed_x + within / vector * chunk_slots_ * row_values() +
                        static_cast<std::int64_t>(r) * pairs_ * packed + within % vector * 2;
        sum_tile(std::min<std::int64_t>(tile_inputs, end - in), last - first,
                 {x, outputs.data(), rows.data(), row_count, pairs_, out_, &task.prefetch});
        for (Output& output : outputs) output.sums += tile_inputs * out_;
      }
    }
  }
}

void Conv2dWeightsBf16::run(const Bf16* x, const Bf16* dy, bool accumulate, float* dkernel, void* workspace) const {
  const std::int64_t count = window_.size[0] * window_.size[1] * in_ * out_;
  auto* packed_images = static_cast<std::byte*>(workspace);
  auto* partials = reinterpret_cast<float*>(packed_images + threads_ * (packed_x_bytes() + packed_dy_bytes()));
  if (!accumulate) std::fill_n(dkernel, count, 0.0f);
  std::fill_n(partials, (row_ranges_ - 1) * count, 0.0f);

  const std::int64_t tasks = in_blocks_ * out_blocks_ * row_ranges_;
  parallel_ranges(threads_, 1, [&](std::int64_t first_thread, std::int64_t last_thread) {
    std::byte* memory = packed_images + first_thread * (packed_x_bytes() + packed_dy_bytes());
    for (std::int64_t t = tasks * first_thread / threads_; t < tasks * last_thread / threads_; ++t) {
      const std::int64_t range = t % row_ranges_, blocks = t / row_ranges_;
      const std::int64_t first_in = blocks % in_blocks_ * block, first_out = blocks / in_blocks_ * block;
      Task task{.x = x,
                .dy = dy,
                .sums = range == 0 ? dkernel : partials + (range - 1) * count,
                .packed_x = reinterpret_cast<Bf16*>(memory),
                .packed_dy = reinterpret_cast<Bf16*>(memory + packed_x_bytes()),
                .first_in = first_in,
                .in_vectors = divide_up(std::min(block, in_ - first_in), vector),
                .first_out = first_out,
                .out_vectors = divide_up(std::min(block, out_ - first_out), vector),
                .first = 0,
                .last = 0,
                .prefetch = {}};
      const std::int64_t end = rows_ * (range + 1) / row_ranges_;
      for (task.first = rows_ * range / row_ranges_; task.first < end; task.first = task.last) {
        task.last = std::min(task.first + chunk_rows_, end);
        pack(task);
        fetch_next(task, end);
        for (std::int64_t kernel_row = 0; kernel_row < window_.size[0]; ++kernel_row) sum(task, kernel_row);
      }
    }
  });
  for (std::int64_t range = 1; range < row_ranges_; ++range) {
    const float* partial = partials + (range - 1) * count;
    parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
      simd([=]() TRAINCTL_INLINE {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) dkernel[i] += partial[i];
      });
    });
  }
}

}  // namespace trainctl::cpu
