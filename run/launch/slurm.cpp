// Makes a batch job of SLURM out of a config.
#include <algorithm>
#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/terminal_text.h"
#include "io/metrics/find_run.h"
#include "io/metrics/watch/watched_run.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/slurm/batch_script.h"
#include "run/given_config.h"
#include "run/launch/job.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

// Returns the path that starts the program on every node. In a bundle, this is the path of the wrapper in bin/, which
// sets up the bundle's libraries.
std::string program_path() {
  const fs::path own = own_path();
  const fs::path wrapper = own.parent_path().parent_path() / "bin" / own.filename();
  return own.parent_path().filename() == "libexec" && exists(wrapper.string()) ? wrapper : own;
}

// Computes the lead time of the stop signal from the step and checkpoint times of the config's newest run, if there is
// one.
SignalLead measured_lead(const RunSpec& spec, const GivenConfig& given, const JobOptions& options) {
  try {
    const std::string directory = options.run_directory.empty()
                                      ? newest_run(spec.name, Value<RunSpec>::write(spec), given.config).path
                                      : options.run_directory;
    WatchedRun run(directory);
    double longest = 0;
    run.look([&](RunEvent event) {
      if (event == RunEvent::checkpoint) longest = std::max(longest, run.record().checkpoint->seconds);
    });
    if (run.record().seconds_per_step > 0 && longest > 0)
      return lead_from(run.record().seconds_per_step, longest, directory);
  } catch (const Error& error) {
    log::debug(format("no run was measured yet: {}", error.what()));
  }
  return {};
}

}  // namespace

BatchJob batch_job(GivenConfig& given, const JobOptions& options) {
  const RunSpec spec = load_run_spec(given, {});
  const int ranks = checked_ranks(options, spec);
  if (!options.time.empty() && !slurm_seconds(options.time)) {
    throw Error(ErrorKind::config, format("--time {} is not a time limit", options.time),
                "write it as SLURM does: minutes, hours:minutes:seconds or days-hours:minutes:seconds");
  }
  if (!options.array.empty() && !is_task_list(options.array)) {
    throw Error(ErrorKind::config, format("--array {} is not a list of tasks", terminal_word(options.array)),
                "write it as SLURM does: 1-8, 0-15:4 or 1,3,7, with %2 at the end for two tasks at a time");
  }
  for (const std::string& option : options.sbatch) {
    const std::string own = own_option_for(option);
    if (own.empty()) continue;
    throw Error(ErrorKind::config,
                format("--sbatch {} sets what trainctl must know to start the ranks", terminal_word(option)),
                format("use {} instead", own));
  }
  if (!options.array.empty() && !options.run_directory.empty()) {
    throw Error(ErrorKind::config, "--run-dir names one directory, and each task of an array needs its own",
                "leave --run-dir out: task N trains in runs/<name>-task-N");
  }
  BatchJob job;
  job.name = spec.name;
  job.directory = fs::current_path();
  job.nodes = options.nodes;
  job.ranks = ranks;
  job.gpus_per_node = options.gpus_per_node;
  job.cpus_per_task = options.cpus_per_task;
  job.time = options.time;
  job.array = options.array;
  job.survives_nodes = spec.cluster.restarts.max > 0;
  job.sbatch = options.sbatch;
  job.lead = measured_lead(spec, given, options);
  std::vector<std::string> settings;  // the job runs on SLURM's hosts
  if (!spec.cluster.hosts.empty()) settings.push_back("cluster.hosts={}");
  if (!spec.cluster.hostfile.empty()) settings.push_back("cluster.hostfile=");
  job.command = run_arguments(given, options, settings);
  job.command.insert(job.command.begin(), program_path());
  job.written_by = this_command();
  return job;
}

}  // namespace trainctl
