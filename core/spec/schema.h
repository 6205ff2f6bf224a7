// The config language described for editors and for people, from the declarations of its keys.
#pragma once

#include <functional>
#include <string>

#include "core/spec/keys.h"

namespace trainctl {

// Reads a value that is written as YAML, a key's default (Key::default_text).
using ParseValue = std::function<Node(const std::string& text)>;

// JSON Schema, draft 2020-12, of configs whose top level is the section.
std::string json_schema(const Section& root, const ParseValue& parse);

// The reference in Markdown: every section and every choice with its keys, types, defaults and meanings.
std::string markdown_reference(const Section& root);

}  // namespace trainctl
