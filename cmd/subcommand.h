// A subcommand: one short file each, and one line in the table of cmd/command_line.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace trainctl {

struct Subcommand {
  std::string name;
  std::string summary;
  std::string example;  // shown by --help
  // Declares the options on the subcommand's parser and returns what runs after parsing; its result is the exit code.
  std::function<std::function<int()>(CLI::App&)> add;
};

// What several subcommands have in common.
struct CommonOptions {
  std::string config;               // path of the YAML file
  std::optional<std::string> text;  // what it holds, where it is no regular file and can be read only once
  std::vector<std::string> sets;    // --set path=value
  bool json = false;                // one JSON document on stdout and nothing else there
  bool quiet = false;
  bool verbose = false;
};

// Declares CONFIG and --set; --json, --quiet and -v. The options must outlive the parser.
void add_config_options(CLI::App& app, CommonOptions& options);
void add_output_options(CLI::App& app, CommonOptions& options);

// Parses and runs. Reports an error once, on stderr, and returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace trainctl
