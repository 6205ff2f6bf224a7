// What of the flat layout an optimizer's op updates, and the factors that some optimizers keep of a parameter.
#pragma once

#include <cstdint>

#include "core/tensor/shape.h"

namespace trainctl {

// What a factored rule keeps of a parameter, seen as `matrices` of [rows, columns], its last two dimensions: for each
// matrix the means of its rows, then those of its columns. Of a vector, a matrix of one row, it keeps the columns
// alone.
struct Factors {
  std::int64_t offset = 0;  // in the state's region
  std::int64_t matrices = 0;
  std::int64_t rows = 0, columns = 0;
  bool vector = false;

  Factors() = default;
  explicit Factors(const Shape& parameter);
  std::int64_t of_matrix() const { return (vector ? 0 : rows) + columns; }
  std::int64_t count() const { return matrices * of_matrix(); }
};

// A range of the flat layout whose parameters are updated with the same weight decay.
struct UpdateRange {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  bool decay = true;     // whether weight decay applies
  Factors factors = {};  // of a factored rule, whose ranges are parameters without the gaps behind them
};

// The shape of the factors of a parameter in a checkpoint: [..., rows + columns], or the vector's.
Shape factors_shape(const Shape& parameter);

}  // namespace trainctl
