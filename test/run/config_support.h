// Configs that are given as text and read like files.
#pragma once

#include <string>

#include "run/run_spec.h"

namespace trainctl::testing {

// A valid config, which test cases change; expected line numbers refer to it.
extern const std::string good_config;

// The text with the first occurrence of `from` replaced; the test fails if there is none.
std::string replaced(std::string text, const std::string& from, const std::string& to);

// Reads a text as the file c.yaml, in a folder of its own; settings are those of --set.
RunSpec read_config(const std::string& text, const std::vector<std::string>& settings = {});

// The errors of read_config(), one on each line; empty if there are none.
std::string config_errors(const std::string& text, const std::vector<std::string>& settings = {});

}  // namespace trainctl::testing
