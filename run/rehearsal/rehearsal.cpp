// Starts trainctl itself as `trainctl run`, with the settings of a rehearsal.
#include "run/rehearsal/rehearsal.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "io/checkpoint/atomic_file.h"
#include "parallel/launch/config_text.h"
#include "parallel/launch/host/child_run.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/plan.h"
#include "run/given_config.h"
#include "run/run_spec.h"

namespace trainctl {
namespace fs = std::filesystem;

Rehearsal::Rehearsal(const GivenConfig& given, const LaunchFlags& launch, const RunSpec& spec, bool keeps)
    : given_(given),
      launch_(launch),
      min_ranks_(spec.cluster.restarts.min_ranks),
      parent_("runs"),
      made_parent_(!exists(parent_)) {
  pass_config(given.config, given.files.pack());
  create_folders(parent_);
  if (!keeps) {
    folder_ = scratch_.emplace(parent_).path();
    return;
  }
  folder_ = parent_ + "/" + spec.name + "-rehearsal";
  if (exists(folder_)) {
    throw Error(ErrorKind::config, SourceLocation{folder_}, "this folder exists, perhaps from an earlier rehearsal",
                "remove it, or rehearse without --keep");
  }
  create_folders(folder_);
}

Rehearsal::~Rehearsal() {
  scratch_.reset();
  std::error_code ignored;
  if (made_parent_ && fs::is_empty(parent_, ignored)) fs::remove(parent_, ignored);
}

RehearsedRun Rehearsal::run(const std::string& name, std::int64_t steps, std::int64_t interval,
                            const std::string& faults, const std::vector<std::string>& sets) {
  const std::string directory = folder_ + "/" + name;
  std::vector<std::string> settings = given_.sets;
  const std::vector<std::string> own = {format("train.max_steps={}", steps),
                                        format("checkpoint.every={} steps", interval),
                                        "checkpoint.keep=3",
                                        "log.every=1 steps",
                                        "log.callbacks=[]",
                                        "log.prometheus=none",
                                        "log.tensorboard=false",
                                        format("cluster.restarts={{max: 3, min_ranks: {}}}", min_ranks_),
                                        "faults=" + faults};
  settings.insert(settings.end(), own.begin(), own.end());
  settings.insert(settings.end(), sets.begin(), sets.end());
  std::vector<std::string> command{own_path(), "run",      given_.config, "--quiet",   "--progress",
                                   "none",     "--resume", "never",       "--run-dir", directory};
  for (const std::string& set : settings) command.insert(command.end(), {"--set", set});
  if (!launch_.ranks.empty()) command.insert(command.end(), {"--ranks", launch_.ranks});
  if (!launch_.hosts.empty()) command.insert(command.end(), {"--hosts", launch_.hosts});
  if (launch_.sync) command.emplace_back("--sync");
  const ChildEnd end = run_child(signals_, command, [](std::string_view) {});
  return read_rehearsed_run(directory, end.exit_code, end.errors);
}

}  // namespace trainctl
