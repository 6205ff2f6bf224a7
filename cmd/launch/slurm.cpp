// trainctl launch slurm: prints a batch script, or submits it and follows its job.
#include <string>

#include "cmd/launch/launch.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/slurm/batch_script.h"
#include "parallel/launch/slurm/follow.h"
#include "parallel/launch/slurm/job.h"
#include "run/launch/job.h"

namespace trainctl {

int launch_slurm(LaunchOptions& options) {
  if (options.wait && (!options.submit || !options.job.array.empty())) {
    throw Error(ErrorKind::config, "--wait follows one job that this command submits",
                options.submit ? "leave it out: an array is many jobs" : "add --submit");
  }
  const BatchJob job = batch_job(options.common, options.job);
  const std::string script = batch_script(job);
  Json json{{"ok", true}, {"script", script}, {"signal_seconds", job.lead.seconds}};
  if (!options.submit) {
    answer(options.common.json ? json_line(json) : script);
    return 0;
  }
  const Signals signals;
  const std::string number = submit_batch(signals, script);
  json["job"] = number;
  json["log"] = log_path(job, number);
  int code = 0;
  if (options.wait) {
    const JobState end = follow_job(signals, number, log_path(job, number), options.common.json);
    code = exit_code_of(end);
    json["ok"] = code == 0;
    json["state"] = end.name;
    json["exit_code"] = code;
  }
  if (options.common.json) {
    answer(json_line(json));
  } else if (!options.wait && !options.common.quiet) {
    if (job.array.empty()) tell_whether_it_starts(signals, number);
    answer(format("job {}: its log is {}\n", number, log_path(job, number)));
  }
  return code;
}

}  // namespace trainctl
