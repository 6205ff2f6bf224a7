// trainctl launch slurm: prints a batch script, or submits it and follows its job.
#include <poll.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <string>

#include "cmd/launch/job.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "io/metrics/find_run.h"
#include "io/metrics/watch/watched_run.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/slurm/batch_script.h"
#include "parallel/launch/slurm/job.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

constexpr int poll_milliseconds = 2000;
constexpr double longest_silence = 120;  // seconds without an answer from SLURM

// Returns `text` without the incomplete UTF-8 character at its end, of one to three bytes, if there is one.
std::string_view without_begun_character(std::string_view text) {
  constexpr std::size_t longest = 3;
  const std::size_t tail = text.size() - std::min(text.size(), longest);
  for (std::size_t at = tail; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (at > 0 && at + length > text.size()) return text.substr(0, at);
  }
  return text;
}

// Copies a log to standard output as it grows.
class GrowingLog {
 public:
  explicit GrowingLog(std::string path) : path_(std::move(path)) {}

  // Writes the text that was added since the last call.
  void show() {
    std::error_code failure;
    const auto size = std::filesystem::file_size(path_, failure);
    if (failure || static_cast<std::int64_t>(size) <= shown_) return;
    const InputFile file(path_);
    std::array<char, 65536> buffer{};
    while (const std::int64_t count = file.read_some(shown_, buffer.data(), std::ssize(buffer))) {
      const std::string_view text = without_begun_character({buffer.data(), static_cast<std::size_t>(count)});
      write_output(text);
      shown_ += std::ssize(text);
      if (std::ssize(text) < count && count < std::ssize(buffer)) break;  // the rest of the character is still to come
    }
  }

 private:
  std::string path_;
  std::int64_t shown_ = 0;
};

// Waits for `milliseconds`. Throws Error{interrupted} on a request to stop.
void wait_for_requests(const Signals& signals, const std::string& job, int milliseconds) {
  pollfd request{signals.descriptor(), POLLIN, 0};
  poll(&request, 1, milliseconds);
  while (const int signal = signals.next()) {
    if (signal == SIGCHLD) continue;
    throw Error(ErrorKind::interrupted, format("job {} continues, but is no longer followed", job),
                format("`scancel {}` ends it", job));
  }
}

// Logs how the state of the job has changed.
void say(const std::string& job, const JobState& now, const JobState& before) {
  const std::string why = now.reason.empty() ? "" : format(" ({})", now.reason);
  if (now.name == "PENDING") {
    const bool has_run = !before.name.empty() && before.name != "PENDING";
    if (now.restarts > before.restarts || has_run) {
      log::info(format("job {} is queued again{}", job, why));
    } else if (now.may_never_start() && now.reason != before.reason) {
      log::warning(
          format("job {} waits{}, and may never start: cancel it (`scancel {}`), and request less", job, why, job));
    } else if (!why.empty() && now.reason != before.reason) {
      log::info(format("job {} waits{}", job, why));
    }
  } else if (now.name == before.name) {
    return;
  } else if (now.name == "RUNNING") {
    log::info(format("job {} runs", job));
  } else if (now.name == "COMPLETED") {
    log::info(format("job {} has completed", job));
  } else if (now.ended()) {
    const std::string how = now.exit_code != 0 ? format(", exit code {}", now.exit_code)
                            : now.signal != 0  ? format(", by signal {}", now.signal)
                                               : "";
    log::error(format("job {} has ended: {}{}", job, now.name, how));
  }
}

// Logs whether a job that was just submitted runs, or what it waits for, as soon as SLURM knows.
void tell_whether_it_starts(const Signals& signals, const std::string& job) {
  constexpr int looks = 15, between = 200;  // 3 s
  for (int i = 0; i < looks; ++i) {
    const std::optional<JobState> now = ask_for_job(signals, job);
    if (now && (now->name != "PENDING" || !now->reason.empty())) return say(job, *now, {});
    wait_for_requests(signals, job, between);
  }
}

// Follows a job until it has ended: copies its log to standard output, unless `hides_log`, and logs changes of its
// state. Throws Error{interrupted} on a request to stop, which leaves the job as it is, and Error{peer} if SLURM no
// longer answers.
JobState follow_job(const Signals& signals, const std::string& job, const std::string& log_path, bool hides_log) {
  GrowingLog text(log_path);
  JobState before;
  double answered = seconds_now();
  for (;;) {
    const std::optional<JobState> now = ask_for_job(signals, job);
    if (!hides_log) text.show();
    if (now) {
      answered = seconds_now();
      say(job, *now, before);
      if (now->ended()) return *now;
      before = *now;
    } else if (seconds_now() - answered > longest_silence) {
      throw Error(ErrorKind::peer, format("SLURM has not reported on job {} for {:.0f} s", job, longest_silence),
                  format("its log is {}; `sacct -j {}` may know how it ended", log_path, job));
    }
    wait_for_requests(signals, job, poll_milliseconds);
  }
}

// Returns the path that starts the program on every node. In a bundle, this is the path of the wrapper in bin/, which
// sets up the bundle's libraries.
std::string program_path() {
  const fs::path own = own_path();
  const fs::path wrapper = own.parent_path().parent_path() / "bin" / own.filename();
  return own.parent_path().filename() == "libexec" && exists(wrapper.string()) ? wrapper : own;
}

// Computes the lead time of the stop signal from the step and checkpoint times of the config's newest run, if there is
// one.
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
    log::debug(format("no run was measured yet: {}", error.what()));
  }
  return {};
}

BatchJob batch_job(JobOptions& options) {
  const RunSpec spec = load_run_spec(options.common, {});
  const int ranks = checked_ranks(options, spec);
  if (!options.time.empty() && !slurm_seconds(options.time)) {
    throw Error(ErrorKind::config, format("--time {} is not a time limit", options.time),
                "write it as SLURM does: minutes, hours:minutes:seconds or days-hours:minutes:seconds");
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
  job.lead = measured_lead(spec, options);
  std::vector<std::string> settings;  // the job runs on SLURM's hosts
  if (!spec.cluster.hosts.empty()) settings.push_back("cluster.hosts={}");
  if (!spec.cluster.hostfile.empty()) settings.push_back("cluster.hostfile=");
  job.command = run_arguments(options, settings);
  job.command.insert(job.command.begin(), program_path());
  job.written_by = this_command();
  return job;
}

std::string log_of(const BatchJob& job, const std::string& number) {
  std::string name = log_pattern(job);
  for (const char* placeholder : {"%j", "%A"}) {
    if (const std::size_t at = name.find(placeholder); at != std::string::npos) name.replace(at, 2, number);
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
