// Loads a config for commands that use a network without training it.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

class ConfigFiles;
struct GivenConfig;
struct LaunchFlags;
struct RunSpec;

// What a config is read for. Only `training` needs the keys of `train` that say how to train: without an optimizer, a
// batch size or an end of the run, other uses read the config as if it had some. `prediction` needs no loss either.
enum class ConfigUse { training, evaluation, prediction };

// As load_run_spec() of run_spec.h and of given_config.h, for this use.
RunSpec load_run_spec(const std::string& file, const std::vector<std::string>& settings, ConfigFiles& files,
                      ConfigUse use);
RunSpec load_run_spec(GivenConfig& given, const LaunchFlags& flags, ConfigUse use);

}  // namespace trainctl
