// Converts numbers and classes between a config.json and a config.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/document.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "io/hugging_face/config_json.h"

namespace trainctl {

// The number as text.
inline Node number_node(std::int64_t value) { return scalar_node(std::to_string(value)); }
// The shortest text from which the same number is read.
inline Node number_node(double value) { return scalar_node(format("{}", value)); }

// The number with the fewest digits that is the same float: 1e-05, not 9.999999747378752e-06.
inline double short_double(float value) { return std::stod(format("{}", value)); }

// The number of classes: that of the names in id2label; transformers has two by default.
inline std::int64_t read_classes(ConfigJson& config) {
  const Json* names = config.find("id2label");
  const std::int64_t count = names == nullptr ? 2 : static_cast<std::int64_t>(names->size());
  return config.count_or_null("num_labels", std::max<std::int64_t>(1, count));
}

// The rate of dropout that the key gives. Reports the other keys, which have these defaults (empty: this rate), if they
// give another rate, since the preset has only one.
inline double read_dropout(const std::string& preset, const char* first,
                           const std::vector<std::pair<const char*, std::optional<double>>>& others,
                           ConfigJson& config) {
  const double rate = config.rate(first, 0.1);
  for (const auto& [key, usual] : others) {
    const NullValue null = usual ? NullValue::is_wrong : NullValue::is_absent;
    if (config.rate(key, usual.value_or(rate), null) == rate) continue;
    config.error(format("'{}' differs from '{}' ({}), and the preset {} has one rate of dropout: make them equal", key,
                        first, rate, preset));
  }
  return rate;
}

// Adds names of classes to a config.json: LABEL_0, LABEL_1, ...
inline void add_classes(std::int64_t count, Json& config) {
  for (std::int64_t k = 0; k < count; ++k) {
    config["id2label"][std::to_string(k)] = format("LABEL_{}", k);
    config["label2id"][format("LABEL_{}", k)] = k;
  }
}

}  // namespace trainctl
