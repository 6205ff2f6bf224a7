// The options that several subcommands share.
#pragma once

#include <string>

#include "run/given_config.h"

namespace CLI {
class App;
}

namespace trainctl {

struct LaunchFlags;

struct CommonOptions : GivenConfig {
  bool json = false;  // one JSON document on stdout and nothing else
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

}  // namespace trainctl
