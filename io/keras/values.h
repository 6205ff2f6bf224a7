// Values of Keras' JSON as values of a config.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/document.h"
#include "core/base/json_fwd.h"
#include "core/spec/keys.h"

namespace trainctl {

// A whole number, the largest int64 for those beyond it. Throws Json::exception for anything else.
std::int64_t whole_number(const Json& value);
// A number, a word, true or false, or a list of such. Throws Json::exception for anything else.
Node plain_node(const Json& value);
// Likewise, of a window: [3, 3] is 3, [[1, 1], [2, 2]] is [1, 2].
Node window_node(const Json& value);

// "HeNormal" as "he_normal", "L1L2" as "l1l2", "Conv2D" as "conv2d", "SGD" as "sgd".
std::string snake_case(const std::string& name);

// What Keras writes as a name, or as an object with "class_name" and "config".
struct KerasObject {
  std::string name;              // in snake case; empty where the value is neither
  const Json* config = nullptr;  // an object, empty where there is none; part of the value
};
KerasObject keras_object(const Json& value);

// The options, a map, without those that have their defaults in the section.
Node without_defaults(const Section& section, const Node& options);
// A choice of the table as it is written: its name, or a map with `name` where other options than defaults are left.
Node choice_node(const ChoiceTable& table, const std::string& name, const Node& options);

}  // namespace trainctl
