// Spectral normalisation: divides a kernel by an estimate of its largest singular value.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// One update of the layer spectral_normalization, as in Keras (Miyato et al., 2018). The kernel [..., columns] is a
// matrix W [rows, columns], and u [columns], or [1, columns], estimates the right singular vector of its largest
// singular value. Each of `iterations` computes v = W u / |W u|, then u = v W / |v W|. The kernel becomes W / (v W u).
// If v W u is 0, as for a kernel of zeros, kernel and u do not change. Norms below `least_norm` count as `least_norm`.
// Sums are computed in float64 in an order that depends on the shape only. Inputs: kernel, u (float32). Outputs: the
// same tensors.
struct SpectralNorm final : OpDef {
  static constexpr double least_norm = 1e-7;
  int iterations = 1;

  explicit SpectralNorm(int n) : iterations(n) {}
  std::string_view kind() const override { return "spectral_norm"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}, {1, 1}}; }
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  double reads(std::size_t input, std::span<const TensorType>) const override {
    return input == 0 ? 2 * iterations + 1 : 1;
  }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
