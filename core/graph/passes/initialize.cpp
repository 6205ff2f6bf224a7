// Computes Keras' initializers as functions of (seed, parameter's name, element).
#include "core/graph/passes/initialize.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/base/random.h"

namespace trainctl {
namespace {

// The number of random words in a block: element e uses word e % 4 of block e / 4.
constexpr std::int64_t words = 4;
constexpr std::int64_t chunk = 1 << 16;  // number of elements that a thread fills in one turn; a multiple of `words`

// A standard normal number truncated at two standard deviations, by the inverse of its distribution function: x P(u) /
// Q(u) with u = 1 - x^2, a minimax approximation with relative error 1e-7. It calls no libm function, so that the
// results are bitwise equal on every machine.
float truncated_normal(std::uint32_t word) {
  constexpr float within_two_deviations = 0.954499736f;  // erf(sqrt(2))
  const float x = (2 * (static_cast<float>(word >> 8) + 0.5f) * 0x1p-24f - 1) * within_two_deviations;
  const float u = (1 - x) * (1 + x);
  const float p = (((59.71643643f * u + 671.324925f) * u + 707.0172133f) * u + 127.0921005f) * u + 3.102090113f;
  const float q = (((140.7074778f * u + 628.463887f) * u + 425.3943375f) * u + 55.71891143f) * u + 1;
  return x * p / q;
}

double product(const double* a, const double* b, std::int64_t length) {
  double sum = 0;
  for (std::int64_t i = 0; i < length; ++i) sum += a[i] * b[i];
  return sum;
}

// Subtracts from the last of `count + 1` vectors its projections onto the vectors before it, which are orthonormal.
// `products` is workspace for `count` numbers.
void subtract_projections(double* vectors, std::int64_t count, std::int64_t length, std::vector<double>& products) {
  double* const last = vectors + count * length;
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    products[static_cast<std::size_t>(i)] = product(vectors + i * length, last, length);
  }
  constexpr std::int64_t run = 256;  // number of elements that a thread updates in one turn
#pragma omp parallel for schedule(static)
  for (std::int64_t begin = 0; begin < length; begin += run) {
    const std::int64_t end = std::min(begin + run, length);
    for (std::int64_t i = 0; i < count; ++i) {
      const double* const vector = vectors + i * length;
      const double factor = products[static_cast<std::size_t>(i)];
      for (std::int64_t k = begin; k < end; ++k) last[k] -= factor * vector[k];
    }
  }
}

// Replaces a row-major matrix [rows, columns] by the matrix with orthonormal columns (or rows, if there are fewer rows
// than columns) that spans the same space: the Q of its QR decomposition in which R has a positive diagonal (Saxe et
// al., 2014, as in Keras). Uses the Gram-Schmidt method in float64, with two passes for each vector to remove rounding
// errors. The result does not depend on the number of threads.
void make_orthogonal(float* values, std::int64_t rows, std::int64_t columns) {
  const bool by_column = rows >= columns;
  const std::int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  const auto at = [&](std::int64_t vector, std::int64_t k) -> float& {
    return by_column ? values[k * columns + vector] : values[vector * columns + k];
  };
  std::vector<double> vectors(static_cast<std::size_t>(count * length)), products(static_cast<std::size_t>(count));
  for (std::int64_t v = 0; v < count; ++v) {
    for (std::int64_t k = 0; k < length; ++k) {
      vectors[static_cast<std::size_t>(v * length + k)] = static_cast<double>(at(v, k));
    }
  }
  for (std::int64_t v = 0; v < count; ++v) {
    double* const vector = vectors.data() + v * length;
    for (int pass = 0; pass < 2; ++pass) subtract_projections(vectors.data(), v, length, products);
    const double norm = std::sqrt(product(vector, vector, length));
    for (std::int64_t k = 0; k < length; ++k) {
      vector[k] /= norm;
      at(v, k) = static_cast<float>(vector[k]);
    }
  }
}

struct Uniform {
  float low, high;
  void fill(const PhiloxBlock& block, float* values) const {
    for (std::size_t i = 0; i < words; ++i) values[i] = low + (high - low) * uniform01(block[i]);
  }
};

struct TruncatedNormal {
  float mean, stddev;
  void fill(const PhiloxBlock& block, float* values) const {
    for (std::size_t i = 0; i < words; ++i) values[i] = mean + stddev * truncated_normal(block[i]);
  }
};

// Computes two normal numbers from two words by the Box-Muller transform.
struct Normal {
  float mean, stddev;
  void fill(const PhiloxBlock& block, float* values) const {
    for (std::size_t i = 0; i < words; i += 2) {
      const float radius = stddev * std::sqrt(-2 * std::log(1 - uniform01(block[i])));
      const float angle = 2 * std::numbers::pi_v<float> * uniform01(block[i + 1]);
      values[i] = mean + radius * std::cos(angle);
      values[i + 1] = mean + radius * std::sin(angle);
    }
  }
};

template <class Distribution>
void draw(const RandomKey& key, std::int64_t count, float* values, const Distribution& distribution) {
#pragma omp parallel for schedule(static) if (count > chunk)
  for (std::int64_t begin = 0; begin < count; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, count);
    std::int64_t e = begin;
    for (; e + words <= end; e += words) {
      distribution.fill(key.block(static_cast<std::uint64_t>(e / words)), values + e);
    }
    if (e < end) {
      float last[words];
      distribution.fill(key.block(static_cast<std::uint64_t>(e / words)), last);
      std::copy(last, last + (end - e), values + e);
    }
  }
}

// The variance that preserves the scale of activations or gradients, by the rules of Glorot, He and LeCun.
double scaled_variance(const Initializer& initializer) {
  if (initializer.name.starts_with("glorot_")) return 2 / std::max(1.0, initializer.fan_in + initializer.fan_out);
  if (initializer.name.starts_with("he_")) return 2 / std::max(1.0, initializer.fan_in);
  if (initializer.name.starts_with("lecun_")) return 1 / std::max(1.0, initializer.fan_in);
  throw Error(ErrorKind::internal, "internal error: unknown initializer '" + initializer.name + "'");
}

}  // namespace

void initialize(const GraphParameter& parameter, const Tensor& tensor, std::uint64_t seed, float* values) {
  const Initializer& how = parameter.initializer;
  if (how.compute) return how.compute(values);
  const RandomKey key{seed, Purpose::initialize, 0, name_hash(tensor.name)};
  const std::int64_t count = tensor.type.shape.count();
  if (how.name == "zeros") {
    std::fill_n(values, count, 0.0f);
  } else if (how.name == "ones") {
    std::fill_n(values, count, 1.0f);
  } else if (how.name == "constant") {
    std::fill_n(values, count, static_cast<float>(how.value));
  } else if (how.name == "uniform") {
    draw(key, count, values, Uniform{static_cast<float>(how.minimum), static_cast<float>(how.maximum)});
  } else if (how.name == "normal") {
    draw(key, count, values, Normal{static_cast<float>(how.mean), static_cast<float>(how.stddev)});
  } else if (how.name == "truncated_normal") {
    draw(key, count, values, TruncatedNormal{static_cast<float>(how.mean), static_cast<float>(how.stddev)});
  } else if (how.name == "orthogonal") {
    draw(key, count, values, Normal{0, 1});
    const std::int64_t columns = tensor.type.shape.back();
    make_orthogonal(values, count / columns, columns);
    for (std::int64_t e = 0; e < count; ++e) values[e] *= static_cast<float>(how.gain);
  } else if (how.name == "identity") {
    const std::int64_t columns = tensor.type.shape.back();
    for (std::int64_t e = 0; e < count; ++e) {
      values[e] = e / columns == e % columns ? static_cast<float>(how.gain) : 0.0f;
    }
  } else if (how.name.ends_with("_uniform")) {
    const auto limit = static_cast<float>(std::sqrt(3 * scaled_variance(how)));
    draw(key, count, values, Uniform{-limit, limit});
  } else {
    draw(key, count, values,
         TruncatedNormal{0, static_cast<float>(std::sqrt(scaled_variance(how)) / truncated_stddev)});
  }
  std::fill(values + how.ones_begin, values + how.ones_end, 1.0f);
}

}  // namespace trainctl
