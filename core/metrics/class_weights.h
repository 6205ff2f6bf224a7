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

// balanced: samples / (classes * samples of the class); or weights by the classes' names or numbers, 1 for classes that
// the config does not name.
using ClassWeights = Located<std::variant<BalancedClasses, std::map<std::string, double>>>;

}  // namespace trainctl
