// Generates the JSON Schema of configs, for editors, and the Markdown reference from the declarations of the keys.
#pragma once

#include <functional>
#include <string>

#include "core/spec/keys.h"

namespace trainctl {

// Parses a value in YAML, such as a key's default (Key::default_text).
using ParseValue = std::function<Node(const std::string& text)>;

// The JSON Schema (draft 2020-12) of configs with `root` as the top level.
std::string json_schema(const Section& root, const ParseValue& parse);

// The reference in Markdown: all sections and choices with their keys, types, defaults and meanings.
std::string markdown_reference(const Section& root);

}  // namespace trainctl
