// Sums and extremes over dimensions. Long sums are those of pieces of fixed length, so that their order does not depend
// on the number of threads.
#include "core/graph/ops/reduce.h"

#include <algorithm>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/reduce_rows.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t of_values = longest_reduced_row;   // values of a row that are added at a time
constexpr std::int64_t least_rows = 8, most_rows = 1024;  // that are added at a time
constexpr std::int64_t many_pieces = 64;                  // enough for all threads
constexpr std::int64_t columns = 128;                     // of a matrix that are added at a time

// x as [outer, count, inner], of which `count` is reduced.
struct ReducedView {
  std::int64_t outer = 1, count = 1, inner = 1;
};

ReducedView reduced_view(const Shape& x, const Reduce& def) {
  ReducedView view;
  for (int axis = 0; axis < static_cast<int>(x.rank()); ++axis) {
    (axis < def.begin ? view.outer : axis < def.end ? view.count : view.inner) *= x[axis];
  }
  return view;
}

// The larger (or smaller) of two values; NaN if one of them is.
template <ReduceKind kind>
TRAINCTL_INLINE inline float combine(float a, float b) {
  if constexpr (kind == ReduceKind::sum) return a + b;
  if constexpr (kind == ReduceKind::maximum) return b > a || b != b ? b : a;
  return b < a || b != b ? b : a;
}

// Reduces `count` values that are one after the other.
template <ReduceKind kind, class T>
float reduce_values(const T* x, std::int64_t count) {
  float result = 0;
  simd([=, &result]() TRAINCTL_INLINE {
    if constexpr (kind == ReduceKind::sum) {
      result = lane_sum<float>(count, [x](std::int64_t i) TRAINCTL_INLINE { return load(x[i]); });
    } else {
      float of[lanes];
      for (int lane = 0; lane < lanes; ++lane) of[lane] = load(x[std::min<std::int64_t>(lane, count - 1)]);
      std::int64_t i = 0;
      for (; i + lanes <= count; i += lanes) {
#pragma omp simd
        for (int lane = 0; lane < lanes; ++lane) of[lane] = combine<kind>(of[lane], load(x[i + lane]));
      }
      for (; i < count; ++i) of[0] = combine<kind>(of[0], load(x[i]));
      for (int lane = 1; lane < lanes; ++lane) of[0] = combine<kind>(of[0], of[lane]);
      result = of[0];
    }
  });
  return result;
}

// Reduces the rows of a matrix [count, inner] to `width` columns from `first` on.
template <ReduceKind kind, class T>
void reduce_columns(const T* x, std::int64_t count, std::int64_t inner, std::int64_t first, std::int64_t width,
                    float* to) {
  simd([=]() TRAINCTL_INLINE {
    for (std::int64_t c = 0; c < width; ++c) to[c] = load(x[first + c]);
    for (std::int64_t r = 1; r < count; ++r) {
      const T* const row = x + r * inner + first;
#pragma omp simd
      for (std::int64_t c = 0; c < width; ++c) to[c] = combine<kind>(to[c], load(row[c]));
    }
  });
}

// Writes y[at], or adds to it.
void write_value(std::int64_t at, float value, DType dtype, bool accumulate, void* y) {
  if (dtype == DType::float32) {
    float& of = static_cast<float*>(y)[at];
    of = accumulate ? of + value : value;
  } else {
    Bf16& of = static_cast<Bf16*>(y)[at];
    of = store<Bf16>(accumulate ? load(of) + value : value);
  }
}

struct ReduceKernel {
  ReducedView view;
  std::int64_t piece = of_values;  // values that are added at a time
  float scale = 1;
  DType to = DType::float32;
  bool accumulate = false;

  template <ReduceKind kind, class T>
  void run(const T* x, void* y, float* pieces) const {
    if (view.inner == 1) return reduce_rows<kind>(x, y, pieces);
    const std::int64_t of_column = divide_up(view.count, piece), blocks = divide_up(view.inner, columns);
    const std::int64_t width = std::min(columns, view.inner), rows = std::min(piece, view.count);
    const std::int64_t grain = std::max<std::int64_t>(1, element_grain / (rows * width));
    parallel_ranges(view.outer * of_column * blocks, grain, [=, this](std::int64_t begin, std::int64_t end) {
      float sums[columns];
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t p = b / blocks, first = b % blocks * columns, row = p % of_column * piece;
        const std::int64_t wide = std::min(columns, view.inner - first);
        reduce_columns<kind>(x + (p / of_column * view.count + row) * view.inner, std::min(piece, view.count - row),
                             view.inner, first, wide, of_column == 1 ? sums : pieces + p * view.inner + first);
        for (std::int64_t c = 0; of_column == 1 && c < wide; ++c) write(p * view.inner + first + c, sums[c], y);
      }
    });
    if (of_column == 1) return;
    const std::int64_t joined = std::max<std::int64_t>(1, element_grain / (of_column * width));
    parallel_ranges(view.outer * blocks, joined, [=, this](std::int64_t begin, std::int64_t end) {
      float sums[columns];
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t o = b / blocks, first = b % blocks * columns, wide = std::min(columns, view.inner - first);
        reduce_columns<kind>(pieces + o * of_column * view.inner, of_column, view.inner, first, wide, sums);
        for (std::int64_t c = 0; c < wide; ++c) write(o * view.inner + first + c, sums[c], y);
      }
    });
  }

 private:
  template <ReduceKind kind, class T>
  void reduce_rows(const T* x, void* y, float* pieces) const {
    const std::int64_t of_row = divide_up(view.count, piece);
    const std::int64_t grain = std::max<std::int64_t>(1, element_grain / std::min(piece, view.count));
    parallel_ranges(view.outer * of_row, grain, [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        const std::int64_t o = p / of_row, first = p % of_row * piece;
        const float value = reduce_values<kind>(x + o * view.count + first, std::min(piece, view.count - first));
        of_row == 1 ? write(o, value, y) : void(pieces[p] = value);
      }
    });
    if (of_row == 1) return;
    for (std::int64_t o = 0; o < view.outer; ++o) write(o, reduce_values<kind>(pieces + o * of_row, of_row), y);
  }

  void write(std::int64_t at, float value, void* y) const { write_value(at, value * scale, to, accumulate, y); }
};

}  // namespace

void reduce_rows(const Reduce& def, DType dtype, const void* x, std::int64_t rows, std::int64_t count, void* y) {
  const auto run = [&]<ReduceKind kind, class T>(const T* values) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float value = reduce_values<kind>(values + row * count, count);
      write_value(row, value * def.scale, def.dtype, false, y);
    }
  };
  const auto run_kind = [&]<class T>(const T* values) {
    if (def.reduction == ReduceKind::sum) return run.template operator()<ReduceKind::sum>(values);
    if (def.reduction == ReduceKind::maximum) return run.template operator()<ReduceKind::maximum>(values);
    run.template operator()<ReduceKind::minimum>(values);
  };
  dtype == DType::float32 ? run_kind(static_cast<const float*>(x)) : run_kind(static_cast<const Bf16*>(x));
}

void RowSums::add(const float* values, std::int64_t offset, std::int64_t count) {
  static_assert(most_lanes == lanes);
  simd([=, this]() TRAINCTL_INLINE {
    float sums[lanes];
    std::copy_n(lanes_, lanes, sums);
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t at = (offset + i) % count_, end = i + std::min(count_ - at, count - i);
      if (at == 0) std::fill_n(sums, lanes, 0.0f);
      // Value k of a row belongs to lane k % lanes, as in lane_sum().
      for (std::int64_t lane = at % lanes; lane % lanes != 0 && i < end; ++i, ++lane) sums[lane] += values[i];
      for (; i + lanes <= end; i += lanes) {
#pragma omp simd
        for (int lane = 0; lane < lanes; ++lane) sums[lane] += values[i + lane];
      }
      for (int lane = 0; i < end; ++i, ++lane) sums[lane] += values[i];
      if ((offset + end) % count_ == 0) write_sum(sums, offset + end);
    }
    std::copy_n(sums, lanes, lanes_);
  });
}

float* RowSums::begin(std::int64_t offset, std::int64_t count) {
  const std::int64_t at = offset % count_;
  if (at % lanes != 0 || at + count > count_) return nullptr;
  if (at == 0) std::fill_n(lanes_, lanes, 0.0f);
  return lanes_;
}

void RowSums::end(std::int64_t offset, std::int64_t count) {
  if ((offset + count) % count_ == 0) write_sum(lanes_, offset + count);
}

// Writes the sum of the row that ends before value number `end`.
void RowSums::write_sum(float* sums, std::int64_t end) {
  for (int width = lanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  }
  write_value(end / count_ - 1, sums[0] * scale_, dtype_, false, to_);
}

std::int64_t rows_of_piece(std::int64_t rows) {
  return std::clamp(divide_up(rows, many_pieces), least_rows, most_rows);
}

void ColumnSums::add(const float* values, std::int64_t offset, std::int64_t count) const {
  simd([=, this]() TRAINCTL_INLINE {
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t first = (first_ + offset + i) % columns_, width = std::min(columns_ - first, count - i);
      const float* const from = values + i;
      float* const to = sums_ + first;
      if (is_first(offset + i)) {
        std::copy_n(from, width, to);
      } else {
#pragma omp simd
        for (std::int64_t c = 0; c < width; ++c) to[c] += from[c];
      }
      i += width;
    }
  });
}

void join_pieces(const float* sums, std::int64_t pieces, std::int64_t of_row, float scale, float* y) {
  const std::int64_t grain = std::max<std::int64_t>(1, element_grain / (pieces * columns));
  parallel_ranges(divide_up(of_row, columns), grain, [=](std::int64_t begin, std::int64_t end) {
    float joined[columns];
    for (std::int64_t first = begin * columns; first < std::min(of_row, end * columns); first += columns) {
      const std::int64_t width = std::min(columns, of_row - first);
      reduce_columns<ReduceKind::sum>(sums, pieces, of_row, first, width, joined);
      for (std::int64_t c = 0; c < width; ++c) y[first + c] = joined[c] * scale;
    }
  });
}

Lowering lower_reduce(const LowerContext& context) {
  const auto& def = context.op.as<Reduce>();
  const ReducedView view = reduced_view(context.input(0).shape, def);
  // A row group (row_group.cpp) adds such columns in the same pieces, so that the sums have the same bits.
  const bool may_be_grouped = view.outer == 1 && view.inner <= longest_reduced_row;
  const std::int64_t piece = view.inner == 1 ? of_values : may_be_grouped ? rows_of_piece(view.count) : most_rows;
  const ReduceKernel kernel{view, piece, def.scale, def.dtype, def.accumulate};
  const std::int64_t pieces = view.outer * divide_up(view.count, piece) * view.inner;
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [kernel, reduction = def.reduction](const Buffers& buffers) {
          const T* x = buffers.in<T>(0);
          void* y = buffers.out<void>(0);
          auto* workspace = buffers.workspace<float>();
          if (reduction == ReduceKind::sum) return kernel.run<ReduceKind::sum>(x, y, workspace);
          if (reduction == ReduceKind::maximum) return kernel.run<ReduceKind::maximum>(x, y, workspace);
          kernel.run<ReduceKind::minimum>(x, y, workspace);
        },
        view.count > piece ? pieces * static_cast<std::int64_t>(sizeof(float)) : 0);
  });
}

}  // namespace trainctl::cpu
