// Configs as texts, read as a file would be.
#pragma once

#include <string>

#include "run/run_spec.h"

namespace trainctl::testing {

// A config that is right, and that cases change. Line numbers are counted in it.
extern const std::string good_config;

// The text with one occurrence of `from` replaced; the test fails where there is none.
std::string replaced(std::string text, const std::string& from, const std::string& to);

// Reads a text as the file c.yaml, in a folder of its own; settings are those of --set.
RunSpec read_config(const std::string& text, const std::vector<std::string>& settings = {});

// What read_config() says is wrong, one line each; empty where nothing is.
std::string config_errors(const std::string& text, const std::vector<std::string>& settings = {});

}  // namespace trainctl::testing
