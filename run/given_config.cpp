// Reads the config that a command line names, and passes it on to the ranks.
#include "run/given_config.h"

#include <optional>

#include "parallel/launch/config_text.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/start_ranks.h"
#include "run/config_use.h"
#include "run/run_spec.h"

namespace trainctl {

RunSpec load_run_spec(GivenConfig& given, const LaunchFlags& flags) {
  return load_run_spec(given, flags, ConfigUse::training);
}

RunSpec load_run_spec(GivenConfig& given, const LaunchFlags& flags, ConfigUse use) {
  if (!flags.device.empty()) given.sets.push_back("cluster.device=" + flags.device);
  const std::optional<std::string> passed = take_passed_config(given.config);
  if (passed) given.files = ConfigFiles::unpack(*passed).value_or(given.files);
  return load_run_spec(given.config, given.sets, given.files, use);
}

LaunchedConfig launched_config(const GivenConfig& given) {
  if (given.config.empty()) return {};
  return {given.config, given.files.pack(), [&given] { return variables_of(given.config, given.sets, given.files); }};
}

}  // namespace trainctl
