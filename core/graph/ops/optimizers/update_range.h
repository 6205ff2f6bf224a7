// The ranges of the flat layout that an optimizer op updates, and the factors that some optimizers store for a
// parameter.
#pragma once

#include <cstdint>

#include "core/tensor/shape.h"

namespace trainctl {

// The state of a factored rule for one parameter: for each matrix, the means of its rows and then the means of its
// columns. The last two dimensions of the parameter are a matrix [rows, columns]; the parameter has `matrices`
// matrices. A vector is a matrix of one row and has only the means of its columns.
struct Factors {
  std::int64_t offset = 0;  // offset in the region of the state
  std::int64_t matrices = 0;
  std::int64_t rows = 0, columns = 0;
  bool vector = false;

  Factors() = default;
  explicit Factors(const Shape& parameter);
  std::int64_t of_matrix() const { return (vector ? 0 : rows) + columns; }
  std::int64_t count() const { return matrices * of_matrix(); }
};

// A range of the flat layout in which all parameters have the same weight decay.
struct UpdateRange {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  bool decay = true;     // whether weight decay applies
  Factors factors = {};  // only for a factored rule, whose ranges are one parameter each, without gaps
  // For a rule that orthogonalizes matrices: [rows, columns] of such a matrix, which begins at the offset. Empty for
  // other parameters.
  Shape matrix = {};
};

// The shape of the factors of a parameter in a checkpoint: [..., rows + columns], or the parameter's own shape if it is
// a vector.
Shape factors_shape(const Shape& parameter);

}  // namespace trainctl
