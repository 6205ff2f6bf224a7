// The numbers 0, 1, 2, ... as a tensor.
#pragma once

#include <cstdint>

#include "core/graph/op.h"

namespace trainctl {

// y[i] = i. Inputs: none. Outputs: y float32 [count].
struct Arange final : OpDef {
  std::int64_t count = 0;

  explicit Arange(std::int64_t c) : count(c) {}
  std::string_view kind() const override { return "arange"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

}  // namespace trainctl
