// Products of matrices by tiles of sums in registers, for each instruction set, on the calling thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace trainctl::cpu {

// The elements of a matrix on neighbouring diagonals: those whose column minus row is in [first, last].
struct Band {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max() / 4;
  std::int64_t first = -unlimited, last = unlimited;

  struct Columns {
    std::int64_t begin, end;
  };
  // The columns, of `columns` columns, that the band covers in the rows [row, end). There may be none: begin >= end.
  constexpr Columns of_rows(std::int64_t row, std::int64_t end, std::int64_t columns) const {
    return {std::max<std::int64_t>(0, row + first), std::min(columns, end + last)};
  }
  constexpr Band transposed() const { return {-last, -first}; }
};

// A product c (+)= a b in float32. Element (r, k) of a is at a[r * a_row + k * a_step], element (k, column) of b at
// b[k * b_step + column], element (r, column) of c at c[r * c_row + column]. Sums run over k in order, so that a row of
// c depends on one row of a.
struct MatrixProduct {
  const float* a;
  std::int64_t a_row, a_step;
  const float* b;
  std::int64_t b_step;
  float* c;
  std::int64_t c_row;
  std::int64_t rows, columns;            // of c; columns are a multiple of 16
  std::int64_t depth;                    // columns of a
  bool add = false;                      // add to c instead of overwriting it
  const std::int64_t* a_rows = nullptr;  // a table of offsets of rows that replace r * a_row, or null
  Band of_a{};                           // the values of a outside it are 0; their terms may be left out
  Band of_c{};                           // the values of c outside it need not be computed

  const float* row(std::int64_t r) const { return a + (a_rows ? a_rows[r] : r * a_row); }
};

// Computes a product whose values of a and b are float32.
void multiply(const MatrixProduct& product);

// Whether the processor has instructions for pairs of bfloat16.
bool multiplies_pairs();

// Computes a product whose values of a and b are pairs of bfloat16 in 32 bits: element (r, k) stands for the elements
// (r, 2 k), in the lower half, and (r, 2 k + 1); columns of the band of a count these. Requires multiplies_pairs().
void multiply_pairs(const MatrixProduct& product);

}  // namespace trainctl::cpu
