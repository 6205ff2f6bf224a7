// Infers the state of a run from the files in its directory.
#include "io/metrics/watch/watched_run.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/supervisor_lock.h"
#include "io/metrics/metrics_jsonl.h"
#include "io/metrics/run_lock.h"

namespace trainctl {
namespace {

// A run is silent after this many seconds without an event, and after this multiple of the longest time between two of
// its events, such as for an evaluation.
constexpr double min_silent_seconds = 60;
constexpr double min_silent_gaps = 3;
// Seconds by which the times of a file and of a simultaneous event may differ: rounding, a file server's clock.
constexpr double max_clock_difference = 1;
constexpr FileRole named{ErrorKind::config};

std::string record_of(const std::string& directory) { return directory + "/metrics.jsonl"; }

// Returns the time at which the lock was last taken, in seconds since 1970; 0 if there is no lock.
double lock_time(const std::string& directory) {
  struct stat status {};
  if (stat((directory + "/lock").c_str(), &status) != 0) return 0;
  return static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
}

[[noreturn]] void refuse(const std::string& directory, const std::string& why, const char* remedy) {
  throw Error(ErrorKind::config, SourceLocation{directory}, why, remedy);
}

constexpr const char* name_a_run = "name the directory of a run (runs/<name>), or none for all that are running";

}  // namespace

// Who trains in a directory.
struct WatchedRun::Trainer {
  std::string process;         // as a lock file names it; "" if there is none
  std::optional<bool> exists;  // no value if that is unknown
  bool supervised = false;     // whether the supervisor of its ranks runs, which may start them again
  bool starts_again = false;   // whether no rank runs, so that `process` is the supervisor
};

WatchedRun::Trainer WatchedRun::trainer_in(const std::string& directory) {
  // Looked at first: if the supervisor ends meanwhile, so have its ranks.
  const std::optional<RunningSupervisor> supervisor = supervisor_of(directory);
  const std::string holder = lock_holder(directory);
  const std::optional<bool> exists = holder_exists(holder);
  if (supervisor && exists == false) return {supervisor->process, true, true, true};
  return {holder, exists, supervisor.has_value(), false};
}

std::string_view name_of(RunState state) {
  switch (state) {
    case RunState::starting:
      return "starting";
    case RunState::running:
      return "running";
    case RunState::silent:
      return "silent";
    case RunState::gone:
      return "gone";
    case RunState::ended:
      return "ended";
  }
  return "";
}

WatchedRun::WatchedRun(std::string directory) : directory_(std::move(directory)), file_(record_of(directory_)) {
  const FileType type = file_type(directory_, named);
  if (type == FileType::absent) refuse(directory_, "there is no such directory", name_a_run);
  if (type != FileType::folder) refuse(directory_, "this is not a directory", name_a_run);
  const bool has_record = exists(record_of(directory_), named);
  const Trainer trainer = trainer_in(directory_);
  if (!has_record && trainer.process.empty()) {
    const bool was_run = exists(directory_ + "/checkpoints", named) && exists(directory_ + "/config.yaml", named);
    if (was_run) {
      refuse(directory_, "this is a part of a run directory: the run's record, metrics.jsonl, is missing",
             "watch the directory that the run writes; trainctl inspect shows its checkpoints");
    }
    refuse(directory_, "this directory holds no run", name_a_run);
  }
  if (!has_record && trainer.exists == false) {
    refuse(directory_, format("the run there never began to train, and its {} has ended", trainer.process),
           "see its log.txt, then start it again (trainctl run)");
  }
}

void WatchedRun::look(const std::function<void(RunEvent)>& seen) {
  if (!is_folder(directory_, named)) refuse(directory_, "the directory was removed", name_a_run);
  // Checked before the record is read, since a process writes its end event before it exits.
  const Trainer trainer = trainer_in(directory_);
  const double locked = lock_time(directory_);
  const double before = std::max(record_.time, locked_);
  process_ = trainer.process;
  locked_ = locked;
  bool anew = false;
  for (bool more = true; more;) {
    GrowingFile::News news = file_.read();
    more = news.more;
    if (news.anew) {
      anew = true;
      record_ = {};
      seen(RunEvent::anew);
    }
    for (const std::string& line : without_old_steps(std::move(news.lines))) {
      const RunEvent event = add(line);
      if (event != RunEvent::none) seen(event);
    }
  }
  const double newest = std::max(record_.time, locked_);
  // The clocks of hosts may differ: the times in the files are used only for activity before the first look.
  if (newest != before || anew) {
    last_activity_ = seconds_now() - (last_activity_ == 0 ? std::max(0.0, wall_seconds() - newest) : 0.0);
  }
  find_state(trainer);
}

RunEvent WatchedRun::add(const std::string& line) {
  try {
    return add_line(record_, line);
  } catch (const Error& error) {
    throw Error(error.kind(), SourceLocation{record_of(directory_)}, error.what());
  }
}

void WatchedRun::find_state(const Trainer& trainer) {
  // A lock that is newer than the end event belongs to the next start of the run, which has not written its start
  // event.
  const bool goes_on = trainer.exists == true && locked_ > record_.time + max_clock_difference;
  // A rank records its own failure before the supervisor decides whether the ranks start again.
  const bool is_undecided = trainer.supervised && record_.end && record_.end->status == "failed";
  if (record_.end && !goes_on && !is_undecided) {
    state_ = RunState::ended;
  } else if (trainer.exists == false) {
    state_ = RunState::gone;
  } else if (!trainer.exists &&
             silent_seconds() > std::max(min_silent_seconds, min_silent_gaps * record_.longest_gap)) {
    state_ = RunState::silent;
  } else {
    state_ = record_.start && !record_.end && !trainer.starts_again ? RunState::running : RunState::starting;
  }
}

double WatchedRun::silent_seconds() const { return seconds_now() - last_activity_; }

bool may_be_running(const std::string& directory) {
  const std::string record = record_of(directory);
  const WatchedRun::Trainer trainer = WatchedRun::trainer_in(directory);
  if (trainer.process.empty() || trainer.exists == false) return false;
  return trainer.exists == true || trainer.supervised || !final_status(record);
}

}  // namespace trainctl
