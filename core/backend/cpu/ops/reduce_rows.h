// Reductions of rows and sums of columns, for kernels that compute several ops.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/graph/ops/reduce.h"

namespace trainctl::cpu {

// The most values of a row for which reduce_rows() computes what the op `reduce` does.
inline constexpr std::int64_t longest_reduced_row = 8192;

// Reduces each of `rows` rows of `count` values, float32 or bfloat16, to one value of y.
void reduce_rows(const Reduce& def, DType dtype, const void* x, std::int64_t rows, std::int64_t count, void* y);

// Adds values that come part by part to the sums of their rows, with the bits of the op `reduce`.
class RowSums {
 public:
  RowSums() = default;
  // Writes the sums of rows of `count` values to `to`, which has the dtype of `def`.
  RowSums(const Reduce& def, std::int64_t count, void* to)
      : scale_(def.scale), dtype_(def.dtype), count_(count), to_(to) {
    std::fill_n(lanes_, most_lanes, 0.0f);
  }
  // Adds the values [offset, offset + count) of all rows; parts come in order. A sum is written after its last value.
  void add(const float* values, std::int64_t offset, std::int64_t count);
  // The partial sums to whose number k % 32 the caller adds value offset + k, for k < count, instead of add(); it then
  // calls end(). Null if these values are not in one row, or do not begin at a partial sum 0.
  float* begin(std::int64_t offset, std::int64_t count);
  void end(std::int64_t offset, std::int64_t count);

 private:
  static constexpr int most_lanes = 32;

  void write_sum(float* sums, std::int64_t end);

  float scale_ = 1;
  DType dtype_ = DType::float32;
  std::int64_t count_ = 1;
  void* to_ = nullptr;
  float lanes_[most_lanes];
};

// The number of rows of a matrix whose columns are added in one piece, of `rows` rows. The sums of the pieces are added
// then. It depends on the number of rows alone, so that the order of the additions does not depend on the threads.
std::int64_t rows_of_piece(std::int64_t rows);

// Adds the values of rows of a piece to the sums of their columns. Row 0 sets the sums.
class ColumnSums {
 public:
  ColumnSums() = default;
  // The values begin with row `first_row` of the piece.
  ColumnSums(std::int64_t columns, std::int64_t first_row, float* sums)
      : columns_(columns), first_(first_row * columns), sums_(sums) {}
  // Adds the values [offset, offset + count) of all rows.
  void add(const float* values, std::int64_t offset, std::int64_t count) const;
  // The sums that the caller sets to the values [offset, offset + count) or, if is_first() is false, to which it adds
  // them; null if these values are not in one row.
  float* at(std::int64_t offset, std::int64_t count) const {
    const std::int64_t column = (first_ + offset) % columns_;
    return column + count <= columns_ ? sums_ + column : nullptr;
  }
  bool is_first(std::int64_t offset) const { return first_ + offset < columns_; }

 private:
  std::int64_t columns_ = 1, first_ = 0;
  float* sums_ = nullptr;
};

// Writes y[c] = scale * the sum over the pieces of sums[piece * columns + c].
void join_pieces(const float* sums, std::int64_t pieces, std::int64_t columns, float scale, float* y);

}  // namespace trainctl::cpu
