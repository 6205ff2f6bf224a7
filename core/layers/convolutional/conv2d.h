// conv2d: a convolution over images; and the check of groups that convolutions share.
#pragma once

#include "core/layers/linear.h"
#include "core/layers/window.h"

namespace trainctl {

struct Conv2dOptions final : LinearLayer {
  std::int64_t filters = 0;
  Size2d kernel_size{0, 0};
  Size2d strides{1, 1};
  Padding padding = PaddingMode::valid;
  Size2d dilation_rate{1, 1};
  std::int64_t groups = 1;

  static Keys<Conv2dOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
};

// Returns the number of groups, or 1 after reporting that it does not divide the channels. The output's shape does not
// depend on this number, so the layers after this one can still be checked.
std::int64_t checked_groups(Layer& layer, const Feature& input, std::int64_t groups, std::int64_t filters);

}  // namespace trainctl
