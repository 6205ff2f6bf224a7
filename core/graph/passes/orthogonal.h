// Matrices of orthonormal columns or rows.
#pragma once

#include <cstdint>

namespace trainctl {

// Replaces a matrix [rows, columns], row by row, by the matrix of orthonormal columns (rows, where these are fewer)
// that spans the same space: Q of its QR decomposition whose R has a positive diagonal (Saxe et al., 2014, as Keras has
// it). The result does not depend on the number of threads.
void make_orthogonal(float* values, std::int64_t rows, std::int64_t columns);

}  // namespace trainctl
