// All options of a command.
#pragma once

#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace trainctl {

// Returns the options of a command in the order of --help: its own ones, then those of its option groups.
std::vector<const CLI::Option*> all_options(const CLI::App& command);

}  // namespace trainctl
