// trainctl launch slurm: a batch script, and on request the job.
#include <algorithm>
#include <filesystem>

#include "cmd/launch/follow_job.h"
#include "cmd/launch/job.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/log.h"
#include "io/metrics/find_run.h"
#include "io/metrics/watch/watched_run.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/slurm/batch_script.h"
#include "parallel/launch/slurm/job.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

// The program by the path that starts it on every node: a bundle's way in sets up its libraries.
std::string program_path() {
  const fs::path own = own_path();
  const fs::path way_in = own.parent_path().parent_path() / "bin" / own.filename();
  return own.parent_path().filename() == "libexec" && exists(way_in.string()) ? way_in : own;
}

// From what the config's newest run has shown, if there is one.
SignalLead measured_lead(const RunSpec& spec, const JobOptions& options) {
  try {
    const std::string directory = options.run_directory.empty()
                                      ? newest_run(spec.name, Value<RunSpec>::write(spec), options.common.config).path
                                      : options.run_directory;
    WatchedRun run(directory);
    double longest = 0;
    run.look([&](RunEvent event) {
      if (event == RunEvent::checkpoint) longest = std::max(longest, run.record().checkpoint->seconds);
    });
    if (run.record().seconds_per_step > 0 && longest > 0)
      return lead_from(run.record().seconds_per_step, longest, directory);
  } catch (const Error& error) {
    log::debug(format("nothing is measured yet: {}", error.what()));
  }
  return {};
}

BatchJob batch_job(JobOptions& options) {
  const CheckedJob checked = checked_job(options);
  if (!options.time.empty() && !slurm_seconds(options.time)) {
    throw Error(ErrorKind::config, format("--time {} is no time limit", options.time),
                "write it as SLURM does: minutes, hours:minutes:seconds or days-hours:minutes:seconds");
  }
  if (!options.array.empty() && !options.run_directory.empty()) {
    throw Error(ErrorKind::config, "--run-dir names one directory, and each task of an array needs its own",
                "leave --run-dir out: task N trains in runs/<name>-task-N");
  }
  BatchJob job;
  job.name = checked.spec.name;
  job.directory = fs::current_path();
  job.nodes = options.nodes;
  job.ranks = checked.ranks;
  job.gpus_per_node = options.gpus_per_node;
  job.cpus_per_task = options.cpus_per_task;
  job.time = options.time;
  job.array = options.array;
  job.sbatch = options.sbatch;
  job.lead = measured_lead(checked.spec, options);
  std::vector<std::string> settings;  // SLURM's hosts are the job's
  if (!checked.spec.cluster.hosts.empty()) settings.push_back("cluster.hosts={}");
  if (!checked.spec.cluster.hostfile.empty()) settings.push_back("cluster.hostfile=");
  job.command = run_arguments(options, settings);
  job.command.insert(job.command.begin(), program_path());
  job.written_by = this_command();
  return job;
}

std::string log_of(const BatchJob& job, const std::string& number) {
  std::string name = log_pattern(job);
  for (const char* stands_for_it : {"%j", "%A"}) {
    if (const std::size_t place = name.find(stands_for_it); place != std::string::npos) name.replace(place, 2, number);
  }
  return (fs::path(job.directory) / name).string();
}

}  // namespace

int launch_slurm(JobOptions& options) {
  if (options.wait && (!options.submit || !options.array.empty())) {
    throw Error(ErrorKind::config, "--wait follows one job that this command submits",
                options.submit ? "leave it out: an array is many jobs" : "add --submit");
  }
  const BatchJob job = batch_job(options);
  const std::string script = batch_script(job);
  Json json{{"ok", true}, {"script", script}, {"signal_seconds", job.lead.seconds}};
  if (!options.submit) {
    answer(options.common.json ? json_line(json) : script);
    return 0;
  }
  const Signals signals;
  const std::string number = submit_batch(signals, script);
  json["job"] = number;
  json["log"] = log_of(job, number);
  int code = 0;
  if (options.wait) {
    const JobState end = follow_job(signals, number, log_of(job, number), options.common.json);
    code = exit_code_of(end);
    json["ok"] = code == 0;
    json["state"] = end.name;
    json["exit_code"] = code;
  }
  if (options.common.json) {
    answer(json_line(json));
  } else if (!options.wait && !options.common.quiet) {
    if (job.array.empty()) tell_whether_it_starts(signals, number);
    answer(format("job {}: its log is {}\n", number, log_of(job, number)));
  }
  return code;
}

}  // namespace trainctl
