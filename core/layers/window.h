// Windows of convolution and pooling, and their padding as a user writes it, resolved against an input.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "core/graph/ops/images/window.h"
#include "core/spec/values.h"

namespace trainctl {

// same: the output has ceil(input / stride) rows; if the sum of the padding is odd, the bottom and the right get one
// more pixel, as in TensorFlow. valid: no padding.
enum class PaddingMode { valid, same };

template <>
struct EnumNames<PaddingMode> {
  static constexpr EnumName<PaddingMode> names[] = {{PaddingMode::valid, "valid"}, {PaddingMode::same, "same"}};
};

using Size2d = std::array<std::int64_t, 2>;  // height, width
using Size3d = std::array<std::int64_t, 3>;  // depth, height, width
// A mode, or the pixels on both sides: {above and below, left and right}, for volumes first {in front and behind}.
template <std::size_t axes>
using PaddingOf = std::variant<PaddingMode, std::array<std::int64_t, axes>>;
using Padding = PaddingOf<2>;
using Padding3d = PaddingOf<3>;

// The largest number of pixels of an image's side, of a window's side, or between windows: libraries count pixels, and
// sums of them, in 32 bits.
inline constexpr std::int64_t max_pixels = std::int64_t{1} << 24;

// Sets the padding of `window` for images or volumes of size `input`. The other members of `window` must be set;
// `valid` leaves the window's padding unchanged. Returns the problem ("kernel 5 exceeds input 4" if `what` is
// "kernel"), or no value if there is none.
template <std::size_t axes>
std::optional<std::string> resolve_padding(WindowOf<axes>& window, const std::type_identity_t<PaddingOf<axes>>& padding,
                                           const std::type_identity_t<std::array<std::int64_t, axes>>& input,
                                           const std::string& what);

}  // namespace trainctl
