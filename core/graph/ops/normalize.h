// A network's input out of stored samples.
#pragma once

#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// How the values of samples lie in a batch, and what a network's input is made of them: scale * x + offset, for each
// channel (each element of the last dimension) or one for all. Without scales they are the input as they are.
struct SampleFormat {
  DType dtype = DType::float32;  // or uint8, or int32 of tokens
  std::vector<float> scale, offset;
};

// y = scale * x + offset. Inputs: x, uint8 or float32. Outputs: y, in dtype `to`.
struct Normalize final : OpDef {
  DType to;
  std::vector<float> scale, offset;  // as in SampleFormat

  Normalize(DType dtype, const SampleFormat& format) : to(dtype), scale(format.scale), offset(format.offset) {}
  std::string_view kind() const override { return "normalize"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {{inputs[0].shape, to}}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
