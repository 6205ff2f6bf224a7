// Converts numbers between a config.json and a config.
#pragma once

#include "core/base/document.h"
#include "core/base/format.h"
#include "core/base/json.h"

namespace trainctl {

inline Node number_node(std::int64_t value) { return scalar_node(std::to_string(value)); }
// The shortest text from which the same number is read.
inline Node number_node(double value) { return scalar_node(format("{}", value)); }

// The number with the fewest digits that is the same float: 1e-05, not 9.999999747378752e-06.
inline double short_double(float value) { return std::stod(format("{}", value)); }

}  // namespace trainctl
