// The interpolation methods for values between pixels, with Keras' names.
#pragma once

#include "core/spec/type_info.h"

namespace trainctl {

enum class Interpolation { nearest, bilinear };

template <>
struct EnumNames<Interpolation> {
  static constexpr EnumName<Interpolation> names[] = {{Interpolation::nearest, "nearest"},
                                                      {Interpolation::bilinear, "bilinear"}};
};

}  // namespace trainctl
