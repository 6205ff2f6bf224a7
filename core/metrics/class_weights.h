// The weights of the classes' samples in training.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "core/spec/values.h"

namespace trainctl {

enum class BalancedClasses { balanced };

template <>
struct EnumNames<BalancedClasses> {
  static constexpr EnumName<BalancedClasses> names[] = {{BalancedClasses::balanced, "balanced"}};
};

// Either `balanced`, which means samples / (classes * samples of the class), or a map from the classes' names or
// numbers to weights. Classes that the config does not name have the weight 1.
using ClassWeights = Located<std::variant<BalancedClasses, std::map<std::string, double>>>;

}  // namespace trainctl
