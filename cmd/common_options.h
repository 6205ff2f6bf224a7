// The options that several subcommands have in common, and the config that they name.
#pragma once

#include <string>
#include <vector>

#include "io/yaml/config_files.h"

namespace CLI {
class App;
}

namespace trainctl {

struct LaunchFlags;
struct LaunchedConfig;
struct RunSpec;

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

}  // namespace trainctl
