// conv2d and conv3d: convolutions over images and volumes; and the check of groups that convolutions share.
#pragma once

#include "core/layers/linear.h"
#include "core/layers/window.h"

namespace trainctl {

// A convolution over images (2 axes) or volumes (3 axes).
template <std::size_t axes>
struct ConvOptions final : LinearLayer {
  using Sizes = typename WindowOf<axes>::Sizes;

  std::int64_t filters = 0;
  Sizes kernel_size{};
  Sizes strides = WindowOf<axes>().strides;
  PaddingOf<axes> padding = PaddingMode::valid;
  Sizes dilation_rate = WindowOf<axes>().dilation;
  std::int64_t groups = 1;

  static Keys<ConvOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
};

using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

// Returns the number of groups, or 1 after reporting that it does not divide the channels. The output's shape does not
// depend on this number, so the layers after this one can still be checked.
std::int64_t checked_groups(Layer& layer, const Feature& input, std::int64_t groups, std::int64_t filters);

}  // namespace trainctl
