// Upsampling of images by integer factors, forward and backward.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/kernel_function.h"
#include "core/graph/op.h"
#include "core/spec/interpolation.h"

namespace trainctl {

// How a row (or column) of the enlarged image is interpolated between two rows of the image: it is
// (1 - part) * row `first` + part * row `second`.
struct Between {
  std::int32_t first = 0, second = 0;
  float part = 0;

  // The weight of a row of the image.
  TRAINCTL_KERNEL_FUNCTION float share(std::int32_t row) const {
    return (first == row ? 1 - part : 0.0f) + (second == row ? part : 0.0f);
  }
};

// Rows [first, end) of the enlarged image that may depend on a given row of the image.
struct Readers {
  std::int32_t first = 0, end = 0;
};

// One dimension of the images: `size` rows (or columns) become size * factor, below 2^29. For n >= 0, half(n) returns n
// / (2 * factor), rounded down; it may use a division or a faster method.
struct Enlarged {
  std::int32_t size = 1, factor = 1;

  template <class Half>
  TRAINCTL_KERNEL_FUNCTION Between between(Interpolation how, std::int32_t row, const Half& half) const {
    if (how == Interpolation::nearest) {
      const std::int32_t source = half(2 * row);
      return {source, source, 0};
    }
    // Positions are in units of 1 / (2 * factor), so that only the last division rounds.
    const std::int32_t last = 2 * factor * (size - 1);
    std::int32_t position = 2 * row + 1 - factor;
    position = position < 0 ? 0 : position > last ? last : position;
    const std::int32_t first = half(position), rest = position - first * 2 * factor;
    return {first, rest == 0 ? first : first + 1, static_cast<float>(rest) / static_cast<float>(2 * factor)};
  }
  TRAINCTL_KERNEL_FUNCTION Readers readers(Interpolation how, std::int32_t row) const {
    if (how == Interpolation::nearest) return {row * factor, (row + 1) * factor};
    const std::int32_t first = (row - 1) * factor + (factor + 1) / 2, end = (row + 1) * factor + factor / 2;
    return {first < 0 ? 0 : first, end > size * factor ? size * factor : end};
  }
};

// Inputs: x [N, H, W, C]. Outputs: y [N, H * factors[0], W * factors[1], C]. nearest repeats each pixel. bilinear
// treats pixels as points at the centres of their squares, as TensorFlow's resize does, and repeats border pixels
// outside the image.
struct Upsample2d final : OpDef {
  std::array<std::int64_t, 2> factors{1, 1};
  Interpolation interpolation = Interpolation::nearest;

  Upsample2d(std::array<std::int64_t, 2> f, Interpolation i) : factors(f), interpolation(i) {}
  std::string_view kind() const override { return "upsample2d"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy [N, H * factors[0], W * factors[1], C]. Outputs: dx [N, H, W, C].
struct Upsample2dGrad final : OpDef {
  std::array<std::int64_t, 2> factors{1, 1};
  Interpolation interpolation = Interpolation::nearest;

  Upsample2dGrad(std::array<std::int64_t, 2> f, Interpolation i) : factors(f), interpolation(i) {}
  std::string_view kind() const override { return "upsample2d_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

}  // namespace trainctl
