// Compares the values of two tensors element by element.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace trainctl {

struct Difference {
  std::int64_t elements = 0;
  std::int64_t differing = 0;   // number of elements whose bits differ
  double largest_absolute = 0;  // largest |a - b|; infinite if a differing element is NaN or Inf
  double largest_relative = 0;  // largest |a - b| / max(|a|, |b|); infinite if largest_absolute is infinite

  bool equal() const { return differing == 0; }
  // Adds the difference of further elements.
  void add(const Difference& other);
};

// Compares the values of two tensors of the same size bit by bit, so that a NaN equals itself and 0 differs from -0.
Difference difference(std::span<const float> a, std::span<const float> b);

// Returns text such as "12 of 640 elements differ, by 1.2e-07 at most, 3e-06 relative to the larger".
std::string to_string(const Difference& difference);

}  // namespace trainctl
