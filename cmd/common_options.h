// The options that several subcommands share, and the config that they name.
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
  ConfigFiles files;              // texts of the config and of the files that it includes, once they are read
  std::vector<std::string> sets;  // --set path=value
  bool json = false;              // one JSON document on stdout and nothing else
  bool quiet = false;
  bool verbose = false;
};

// Declares CONFIG and --set; --json, --quiet and -v. The options must outlive the parser.
void add_config_options(CLI::App& app, CommonOptions& options);
void add_output_options(CLI::App& app, CommonOptions& options);

// Declares --ranks, --hosts, --sync and --device.
void add_launch_options(CLI::App& app, LaunchFlags& flags);

// Declares --phase, the number of one of the run's phases, counted from 1. `phase` stays 0 if the option is not given.
void add_phase_option(CLI::App& app, int& phase);

// Throws Error{config} if the file that a command is about to write exists, unless --force was given.
void require_absent(const std::string& path, bool force);

// Loads the config with the settings of the command line. Adds --device to them as a setting of cluster.device.
RunSpec load_run_spec(CommonOptions& common, const LaunchFlags& flags);

// Returns the config as start_ranks.h requires it. It refers to `common`, which must outlive it.
LaunchedConfig launched_config(const CommonOptions& common);

}  // namespace trainctl
