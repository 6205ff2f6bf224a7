// dense: a fully connected layer over the last dimension.
#pragma once

#include "core/layers/linear.h"

namespace trainctl {

struct DenseOptions final : LinearLayer {
  std::int64_t units = 0;

  static Keys<DenseOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
  MaskUse mask_use() const override { return MaskUse::keeps; }
};

}  // namespace trainctl
