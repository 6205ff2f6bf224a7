// Finds the run of a config, for commands that are given a config instead of a run directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/document.h"

namespace trainctl {

struct RunOfConfig {
  std::string path;
  // Differences between the run's config and the given one in keys that decide the result; empty if it is a run of the
  // given config.
  std::vector<std::string> differences;
};

struct NewestRun {
  std::optional<RunOfConfig> run;
  // If no run has the model of the config: the newest run of another model, and how that differs; else unspecified.
  std::string other;
  std::vector<std::string> differences;
};

// As newest_run(), but returns no run where that throws.
NewestRun find_newest_run(const std::string& name, const Node& config);

// Returns the newest run of this config with a checkpoint among runs/<name>, runs/<name>-2, ...; if there is none, the
// newest run of a config with the same model. Throws Error{data} if there is no run, and Error{config} if all runs have
// other models; its text names `config_file`, the run's config and the differences.
RunOfConfig newest_run(const std::string& name, const Node& config, const std::string& config_file);

// Returns the run directory to which the path of a checkpoint's folder, of a link to such a folder, or of a run
// directory belongs; "" if it belongs to no run.
std::string run_of_checkpoint(const std::string& checkpoint);

// Returns the differences between the run to which a checkpoint or run directory belongs and this config, in keys that
// decide the result (see deciding_differences()), or no value if the path belongs to no run. Throws the errors of
// load_run_config().
std::optional<std::vector<std::string>> key_differences(const std::string& checkpoint, const Node& config);

// Returns the differences between the model of this config and the model of the run to which a checkpoint or run
// directory belongs. The result is also empty if the path belongs to no run.
std::vector<std::string> model_differences(const std::string& checkpoint, const Node& config);

}  // namespace trainctl
