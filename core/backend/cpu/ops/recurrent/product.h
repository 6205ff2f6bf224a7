// Products of matrices of a few rows, which each thread computes by itself, with a matrix that is packed once.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace trainctl::cpu {

// Computes c = a b in float32 with a [rows, inner] and b [inner, columns]. Sums run over the inner dimension in order,
// so that a row of c depends on a single row of a. With dtype bfloat16 the values of a must be exact in bfloat16; b is
// rounded to bfloat16 if the processor multiplies bfloat16.
class PackedProduct {
 public:
  PackedProduct(std::int64_t inner, std::int64_t columns, DType dtype);

  // Values from one row of c to the next: the columns, rounded up to whole vectors. The values after the columns are
  // zeros.
  std::int64_t c_stride() const { return vectors_ * vector; }
  // The numbers of float32 values of packed b, and of the scratch memory for a row of a.
  std::int64_t packed_values() const { return depth_ * vectors_ * vector; }
  std::int64_t scratch_values() const { return in_pairs_ ? depth_ : 0; }
  // Packs b. The element (k, column) of b has the offset k * inner_step + column * column_step. All threads share the
  // work.
  void pack(const float* b, std::int64_t inner_step, std::int64_t column_step, float* packed) const;
  // Computes c on the calling thread alone. The rows of a are contiguous; `scratch` holds `rows` * scratch_values()
  // values.
  void run(const float* a, std::int64_t rows, const float* packed, float* scratch, float* c) const;

 private:
  static constexpr std::int64_t vector = 16;

  std::int64_t inner_, columns_;
  bool in_pairs_;                  // two bfloat16 values, neighbours along the inner dimension, are packed in 32 bits
  std::int64_t depth_;             // number of values or pairs along the inner dimension
  std::int64_t vectors_, panels_;  // packed b is a list of panels of up to 4 vectors: [depth][vectors of the panel]
};

}  // namespace trainctl::cpu
