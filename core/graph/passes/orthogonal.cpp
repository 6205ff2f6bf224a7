// Gram and Schmidt's method in float64, twice for each vector, so that rounding leaves no common part behind.
#include "core/graph/passes/orthogonal.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trainctl {
namespace {

double product(const double* a, const double* b, std::int64_t length) {
  double sum = 0;
  for (std::int64_t i = 0; i < length; ++i) sum += a[i] * b[i];
  return sum;
}

// Takes out of the last of `count + 1` vectors what it shares with those before, which are orthonormal.
void take_out(double* vectors, std::int64_t count, std::int64_t length, std::vector<double>& shared) {
  double* const last = vectors + count * length;
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    shared[static_cast<std::size_t>(i)] = product(vectors + i * length, last, length);
  }
  constexpr std::int64_t run = 256;  // elements that a thread changes at once
#pragma omp parallel for schedule(static)
  for (std::int64_t begin = 0; begin < length; begin += run) {
    const std::int64_t end = std::min(begin + run, length);
    for (std::int64_t i = 0; i < count; ++i) {
      const double* const vector = vectors + i * length;
      const double factor = shared[static_cast<std::size_t>(i)];
      for (std::int64_t k = begin; k < end; ++k) last[k] -= factor * vector[k];
    }
  }
}

}  // namespace

void make_orthogonal(float* values, std::int64_t rows, std::int64_t columns) {
  const bool by_column = rows >= columns;
  const std::int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  const auto at = [&](std::int64_t vector, std::int64_t k) -> float& {
    return by_column ? values[k * columns + vector] : values[vector * columns + k];
  };
  std::vector<double> vectors(static_cast<std::size_t>(count * length)), shared(static_cast<std::size_t>(count));
  for (std::int64_t v = 0; v < count; ++v) {
    for (std::int64_t k = 0; k < length; ++k) {
      vectors[static_cast<std::size_t>(v * length + k)] = static_cast<double>(at(v, k));
    }
  }
  for (std::int64_t v = 0; v < count; ++v) {
    double* const vector = vectors.data() + v * length;
    for (int pass = 0; pass < 2; ++pass) take_out(vectors.data(), v, length, shared);
    const double norm = std::sqrt(product(vector, vector, length));
    for (std::int64_t k = 0; k < length; ++k) {
      vector[k] /= norm;
      at(v, k) = static_cast<float>(vector[k]);
    }
  }
}

}  // namespace trainctl
