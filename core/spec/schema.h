// The config language as JSON Schema for editors and as Markdown for people, made from the declarations of its keys.
#pragma once

#include <functional>
#include <string>

#include "core/spec/keys.h"

namespace trainctl {

// Parses a value written as YAML: a key's default (Key::default_text).
using ParseValue = std::function<Node(const std::string& text)>;

// The JSON Schema (draft 2020-12) of configs whose top level is the section.
std::string json_schema(const Section& root, const ParseValue& parse);

// The reference in Markdown: all sections and choices with their keys, types, defaults and meanings.
std::string markdown_reference(const Section& root);

}  // namespace trainctl
