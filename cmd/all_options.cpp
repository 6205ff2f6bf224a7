// Lists the options of a command and of its option groups, which CLI11 stores as subcommands without a name. Later
// versions of CLI11 list them among the command's options already.
#include "cmd/all_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace trainctl {

std::vector<const CLI::Option*> all_options(const CLI::App& command) {
  std::vector<const CLI::Option*> options = command.get_options();
  for (const CLI::App* group : command.get_subcommands([](const CLI::App* each) { return each->get_name().empty(); })) {
    for (const CLI::Option* option : all_options(*group)) {
      if (std::find(options.begin(), options.end(), option) == options.end()) options.push_back(option);
    }
  }
  return options;
}

}  // namespace trainctl
