// Products of matrices by tiles of sums in registers, for each instruction set, on the calling thread.
#pragma once

#include <cstdint>

namespace trainctl::cpu {

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

  const float* row(std::int64_t r) const { return a + (a_rows ? a_rows[r] : r * a_row); }
};

// Computes a product whose values of a and b are float32.
void multiply(const MatrixProduct& product);

// Whether the processor has instructions for pairs of bfloat16.
bool multiplies_pairs();

// Computes a product whose values of a and b are pairs of bfloat16 in 32 bits: element (r, k) stands for the elements
// (r, 2 k), in the lower half, and (r, 2 k + 1). Requires multiplies_pairs().
void multiply_pairs(const MatrixProduct& product);

}  // namespace trainctl::cpu
