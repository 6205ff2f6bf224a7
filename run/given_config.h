// The config that a command line names: its file, the texts of its files and the values that replace its own.
#pragma once

#include <string>
#include <vector>

#include "io/yaml/config_files.h"

namespace trainctl {

struct LaunchFlags;
struct LaunchedConfig;
struct RunSpec;

struct GivenConfig {
  std::string config;             // path of the YAML file
  ConfigFiles files;              // texts of the config and of the files that it includes, once they are read
  std::vector<std::string> sets;  // settings PATH=VALUE
};

// Loads the config with its settings. Adds the device of the flags to them as a setting of cluster.device. Uses the
// texts that the parent process has passed, if there are any.
RunSpec load_run_spec(GivenConfig& given, const LaunchFlags& flags);

// Returns the config as start_ranks.h requires it. It refers to `given`, which must outlive it.
LaunchedConfig launched_config(const GivenConfig& given);

}  // namespace trainctl
