// Computes a window's padding (same, valid or pixels) for the size of an image or a volume.
#include "core/layers/window.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/format.h"

namespace trainctl {

template <std::size_t axes>
std::optional<std::string> resolve_padding(WindowOf<axes>& window, const std::type_identity_t<PaddingOf<axes>>& padding,
                                           const std::type_identity_t<std::array<std::int64_t, axes>>& input,
                                           const std::string& what) {
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const std::int64_t span = checked_add(checked_multiply(window.dilation[axis], window.size[axis] - 1), 1);
    if (input[axis] > max_pixels || window.strides[axis] > max_pixels) {
      return format("{} {} is more than {} pixels", input[axis] > max_pixels ? "input" : "stride",
                    std::max(input[axis], window.strides[axis]), max_pixels);
    }
    if (const auto* pixels = std::get_if<std::array<std::int64_t, axes>>(&padding)) {
      window.padding_before[axis] = window.padding_after[axis] = (*pixels)[axis];
    } else if (std::get<PaddingMode>(padding) == PaddingMode::same) {
      const std::int64_t output = divide_up(input[axis], window.strides[axis]);
      const std::int64_t covered = checked_add((output - 1) * window.strides[axis], span);
      const std::int64_t total = std::max<std::int64_t>(covered - input[axis], 0);
      window.padding_before[axis] = total / 2;
      window.padding_after[axis] = total - total / 2;
    }
    const std::int64_t padding_sum = checked_add(window.padding_before[axis], window.padding_after[axis]);
    const std::int64_t padded = checked_add(input[axis], padding_sum);
    if (padded > max_pixels && padding_sum > 0) {
      return format("input {} with padding {} is more than {} pixels", input[axis], window.padding_before[axis],
                    max_pixels);
    }
    if (span <= padded) continue;
    std::string text = format("{} {}", what, span);
    if (window.dilation[axis] > 1) text += format(" ({} dilated by {})", window.size[axis], window.dilation[axis]);
    text += format(" exceeds input {}", input[axis]);
    if (padded > input[axis]) text += format(" with padding {}", window.padding_before[axis]);
    return text;
  }
  return {};
}

template std::optional<std::string> resolve_padding<2>(Window&, const Padding&, const Size2d&, const std::string&);
template std::optional<std::string> resolve_padding<3>(Window3d&, const Padding3d&, const Size3d&, const std::string&);

}  // namespace trainctl
