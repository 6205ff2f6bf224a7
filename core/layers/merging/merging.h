// Layers that merge the outputs of several layers: add and concatenate. The other merging layers are in arithmetic.cpp.
#pragma once

#include "core/layers/layer.h"

namespace trainctl {

struct MergingLayer : LayerOptions {
  std::vector<Reference> from;

  std::vector<Reference> references() const final { return from; }
  MaskUse mask_use() const final { return MaskUse::merges; }
};

// Reports an error if the layer has fewer than two inputs.
void check_several(const MergingLayer& options, const Node& node, Reader& reader);

struct AddOptions final : MergingLayer {
  static Keys<AddOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
};

struct ConcatenateOptions final : MergingLayer {
  static Keys<ConcatenateOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
};

}  // namespace trainctl
