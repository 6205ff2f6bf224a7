// The ops that change the reduced gradients of single parameters before the update: centralization and clipping.
//
// These ops work in place on a flat region of gradients (see core/graph/ops/training/update.h). Counts and offsets are
// in elements.
#pragma once

#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// The gradient of one parameter in the region, as a matrix; the columns are the parameter's last dimension.
struct GradientMatrix {
  std::int64_t offset = 0;
  std::int64_t rows = 0, columns = 0;

  std::int64_t count() const { return rows * columns; }
};

// Subtracts from each column of each matrix its mean, computed in float64 (gradient centralization; Yong et al., 2020).
// Inputs: gradients, float32. Outputs: the same tensor.
struct CentralizeGradients final : OpDef {
  std::vector<GradientMatrix> matrices;

  explicit CentralizeGradients(std::vector<GradientMatrix> m) : matrices(std::move(m)) {}
  std::string_view kind() const override { return "centralize_gradients"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// Clips gradients g of the mean loss, which the region holds times count. With `norm` > 0, each matrix is multiplied by
// norm / max(norm, L2 norm of g), where the squares are added in float64 in a fixed order. With `value` > 0, each
// element of g is clipped to [-value, value]. If count is 0, nothing changes. Inputs: gradients, count (float32).
// Outputs: the gradients' tensor.
struct ClipGradients final : OpDef {
  std::vector<GradientMatrix> matrices;
  float norm = 0, value = 0;  // one of them is 0

  ClipGradients(std::vector<GradientMatrix> m, float n, float v) : matrices(std::move(m)), norm(n), value(v) {}
  std::string_view kind() const override { return "clip_gradients"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
