// A subcommand: one short file each, and one line in the table of cmd/command_line.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/start_ranks.h"
#include "run/run_spec.h"

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

// Options that several subcommands have in common.
struct CommonOptions {
  std::string config;             // path of the YAML file
  ConfigFiles files;              // its text, and those of what it includes, once they are read
  std::vector<std::string> sets;  // --set path=value
  bool json = false;              // one JSON document on stdout and nothing else there
  bool quiet = false;
  bool verbose = false;
};

// Declares CONFIG and --set; --json, --quiet and -v. The options must outlive the parser.
void add_config_options(CLI::App& app, CommonOptions& options);
void add_output_options(CLI::App& app, CommonOptions& options);

// Declares --ranks, --hosts and --device.
void add_launch_options(CLI::App& app, LaunchFlags& flags);

// Declares --phase: which of the run's phases is meant, from 1 on; 0 stays where none is named.
void add_phase_option(CLI::App& app, int& phase);

// Throws Error{config} where a file that a command is to write exists, unless --force was given.
void require_absent(const std::string& path, bool force);

// The config with what the command line sets, --device among it, which joins the other settings.
RunSpec load_run_spec(CommonOptions& common, const LaunchFlags& flags);

// The config as start_ranks.h wants it; refers to the options.
LaunchedConfig launched_config(const CommonOptions& common);

// Parses and runs. Reports an error once, on stderr, and returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace trainctl
