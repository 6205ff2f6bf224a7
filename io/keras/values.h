// Converts values of Keras' JSON to values of a config.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/document.h"
#include "core/base/json_fwd.h"
#include "core/spec/keys.h"

namespace trainctl {

// Converts a whole number; numbers beyond int64 become the largest int64. Throws Json::exception for other values.
std::int64_t whole_number(const Json& value);
// Converts a number, a text, true or false, or a list of these. Throws Json::exception for other values.
Node plain_node(const Json& value);
// Converts sizes of a window, and shortens equal sizes: [3, 3] becomes 3, [[1, 1], [2, 2]] becomes [1, 2].
Node window_node(const Json& value);

// Converts "HeNormal" to "he_normal", "L1L2" to "l1l2", "Conv2D" to "conv2d", "SGD" to "sgd".
std::string snake_case(const std::string& name);

// A value that Keras writes as a name, or as an object with "class_name" and "config".
struct KerasObject {
  std::string name;              // name in snake case; empty if the value is neither
  const Json* config = nullptr;  // an object inside the value; an empty object if it has none
};
KerasObject keras_object(const Json& value);

// Returns the map of options without those that are the section's defaults.
Node without_defaults(const Section& section, const Node& options);
// Returns a choice of the table as it is written: its name, or a map with `name` if it has options that are not
// defaults.
Node choice_node(const ChoiceTable& table, const std::string& name, const Node& options);

}  // namespace trainctl
