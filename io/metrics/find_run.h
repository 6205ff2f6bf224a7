// The run that a config has left: what commands read that are given a config in place of a run directory.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"

namespace trainctl {

struct RunOfConfig {
  std::string path;
  // Between the run's config and ours, in what decides the result; empty: it is this config's own.
  std::vector<std::string> differences;
};

// The newest run with a checkpoint among runs/<name>, runs/<name>-2, ...: of this config, otherwise of one with the
// same model. Throws Error{data} where there is no run, Error{config} with `config_file`, the run's config and what
// differs where all are of other models.
RunOfConfig newest_run(const std::string& name, const Node& config, const std::string& config_file);

// The run directory that a checkpoint's folder, a link to one or a run directory belongs to; "" where it is of none.
std::string run_of_checkpoint(const std::string& checkpoint);

// Where the model of the run that a checkpoint or run directory belongs to differs from this config's; empty also where
// it belongs to none.
std::vector<std::string> model_differences(const std::string& checkpoint, const Node& config);

}  // namespace trainctl
