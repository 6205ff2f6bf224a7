// Converts numbers and classes between a config.json and a config.
#pragma once

#include <algorithm>
#include <string>

#include "core/base/document.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "io/hugging_face/config_json.h"

namespace trainctl {

inline Node number_node(std::int64_t value) { return scalar_node(std::to_string(value)); }
// The shortest text from which the same number is read.
inline Node number_node(double value) { return scalar_node(format("{}", value)); }

// The number with the fewest digits that is the same float: 1e-05, not 9.999999747378752e-06.
inline double short_double(float value) { return std::stod(format("{}", value)); }

// The number of classes: that of the names in id2label; transformers has two by default.
inline std::int64_t read_classes(ConfigJson& config) {
  const Json* names = config.find("id2label");
  const std::int64_t count = names == nullptr ? 2 : static_cast<std::int64_t>(names->size());
  return config.count("num_labels", std::max<std::int64_t>(1, count));
}

// Adds names of classes to a config.json: LABEL_0, LABEL_1, ...
inline void add_classes(std::int64_t count, Json& config) {
  for (std::int64_t k = 0; k < count; ++k) {
    config["id2label"][std::to_string(k)] = format("LABEL_{}", k);
    config["label2id"][format("LABEL_{}", k)] = k;
  }
}

}  // namespace trainctl
