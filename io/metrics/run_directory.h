// The directory of a run: which one it is, and the right to write there.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"
#include "io/metrics/run_lock.h"

namespace trainctl {

// The state of the directory of a run that is about to start.
struct FoundRun {
  enum class State {
    nothing,     // no folder, or one without a run in it
    empty,       // a run that ended before its first checkpoint: nothing is lost by starting anew
    foreign,     // a folder with other things in it
    unfinished,  // a run that has not completed
    finished,
  };
  State state = State::nothing;
  std::vector<std::string> differences;  // between its config and ours, in what decides the result
  bool wants_more = false;               // our config asks for more epochs, steps or time
};

enum class RunVerdict { start, start_anew, resume, look_elsewhere, is_finished };

// The rule: a stated directory (--run-dir) is taken or refused, the default one may give way to the next. `may_resume`
// is false for --resume never. Throws Error{config} that begins with the path.
RunVerdict decide(const FoundRun& found, bool stated, bool may_resume, const std::string& path);

// Where two resolved configs differ in what decides what a run has computed so far: all but name, cluster, log,
// checkpoint, faults, what was found out (resolved), when the run ends (train.epochs, max_steps, max_time), and which
// rank holds what (strategy.data, pipeline, place, schedule).
std::vector<std::string> deciding_differences(const Node& before, const Node& now);

// Whether a resolved config lets a run go on longer than another one does.
bool ends_later(const Node& now, const Node& before);

// The config.yaml of a run. Throws Error{data} where it cannot be read, ConfigError where it is none.
Node load_run_config(const std::string& run);

// Finds out what a run directory holds. Throws Error{resource} where that cannot be known or is no folder, and what
// load_yaml() finds wrong with a run's config.
FoundRun inspect_run(const std::string& path, const Node& config);

struct RunRequest {
  std::string name;    // of the config: runs/<name>, or runs/<name>-2, ...
  std::string stated;  // --run-dir; empty for the default
  bool may_resume = true;
  Node config;  // resolved
};

// The directory of a run. It is found first, and claimed when everything else that the run needs is accepted.
class RunDirectory {
 public:
  // Finds it. Creates and changes nothing; a run that lies there is
  // locked from now on. Throws Error{config} where the rule refuses or another process runs there, Error{resource}
  // where the directory cannot be read.
  explicit RunDirectory(RunRequest request);

  const std::string& path() const { return path_; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  // The run in it goes on from its newest checkpoint.
  bool resumes() const { return verdict_ == RunVerdict::resume; }
  // Describes how earlier runs of this name are treated; "" where there is none.
  const std::string& notice() const { return notice_; }
  // Whether the run goes to another directory than runs/<name>, which holds another run.
  bool is_elsewhere() const { return is_elsewhere_; }
  // The stated directory holds a finished run: say so and do nothing.
  bool is_finished() const { return verdict_ == RunVerdict::is_finished; }

  // Makes this process the one writer there until the object goes: folder, lock, config.yaml with `config`, log.txt.
  // Leftovers of killed writers are removed, and so is the record of a run that starts anew. Throws Error{resource}
  // where it cannot be written, Error{config} where another run has begun there meanwhile; then it is left as it was
  // found.
  void claim(const Node& config);

 private:
  RunRequest request_;
  std::string path_;
  std::string notice_;
  bool is_elsewhere_ = false;
  FoundRun::State found_ = FoundRun::State::nothing;
  RunVerdict verdict_ = RunVerdict::start;
  RunLock lock_;
};

}  // namespace trainctl
