// Converts stored samples to the input of a network. Layers also use it to scale and shift values by fixed numbers.
#pragma once

#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// The dtype of the samples x in a batch, and how the network's input is computed from them: scale * x + offset, with a
// scale and an offset for each channel (element of the last dimension) or one for all channels. If `scale` is empty,
// the input is x.
struct SampleFormat {
  DType dtype = DType::float32;  // or uint8, or int32 for tokens
  std::vector<float> scale, offset;
};

// y = scale * x + offset. Inputs: x, uint8, float32 or `to`. Outputs: y, in dtype `to`. Its gradient is the same op
// applied to dy, with offset 0.
struct Normalize final : OpDef {
  DType to;
  std::vector<float> scale, offset;  // as in SampleFormat

  Normalize(DType dtype, const SampleFormat& format) : to(dtype), scale(format.scale), offset(format.offset) {}
  std::string_view kind() const override { return "normalize"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {{inputs[0].shape, to}}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
