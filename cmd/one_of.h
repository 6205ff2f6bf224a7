// A validator of the command line: an option's value must be one of several words.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/format.h"
#include "core/spec/reader.h"
#include "core/spec/suggestion.h"

namespace trainctl {

// Refuses every other value, and suggests the word that was probably meant. The completion scripts read the words from
// the validator's description.
inline CLI::Validator one_of(std::vector<std::string> words) {
  std::string description = "{";
  for (const std::string& word : words) description += (description.size() > 1 ? "," : "") + word;
  description += "}";
  const auto check = [words = std::move(words)](const std::string& value) {
    if (std::find(words.begin(), words.end(), value) != words.end()) return std::string();
    return format("must be {}, not '{}'{}", join_or(words), value, suggestion(value, words));
  };
  return CLI::Validator([check](std::string& value) { return check(value); }, description);
}

}  // namespace trainctl
