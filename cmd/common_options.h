// The options that several subcommands share.
#pragma once

#include <string>
#include <vector>

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

// Throws Error{config} if the file or folder that a command is about to write is one of its inputs, by the same path or
// by a link. `option` names the option for the output, for the message.
void require_not_input(const std::string& option, const std::string& output, const std::vector<std::string>& inputs);
// Returns the paths of all files in a folder and its subfolders; empty if it cannot be read.
std::vector<std::string> all_files_in(const std::string& folder);
// Returns the paths of the files that a run needs to be resumed or used: its config, its record and its checkpoints.
std::vector<std::string> files_of_run(const std::string& run);

// Throws Error{config} if the file that a command is about to write exists, unless --force was given.
void require_absent(const std::string& path, bool force);

}  // namespace trainctl
