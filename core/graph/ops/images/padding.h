// Padding of images with zeros, and cropping; each is the gradient of the other.
#pragma once

#include <array>

#include "core/graph/op.h"

namespace trainctl {

// The widths of the borders of an image, in pixels.
struct Borders {
  std::array<std::int64_t, 2> before{0, 0};  // above, left
  std::array<std::int64_t, 2> after{0, 0};   // below, right
};

// Inputs: x [N, H, W, C]. Outputs: y [N, above + H + below, left + W + right, C], zero outside of x.
struct Pad2d final : OpDef {
  Borders borders;

  explicit Pad2d(Borders b) : borders(b) {}
  std::string_view kind() const override { return "pad2d"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: x [N, H, W, C]. Outputs: y [N, H - above - below, W - left - right, C].
struct Crop2d final : OpDef {
  Borders borders;

  explicit Crop2d(Borders b) : borders(b) {}
  std::string_view kind() const override { return "crop2d"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
