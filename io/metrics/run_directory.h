// Chooses the directory of a run and claims it for this process.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"
#include "io/metrics/run_lock.h"

namespace trainctl {

// The state of a directory in which a run is about to start.
struct FoundRun {
  enum class State {
    nothing,     // no folder, or a folder that has no files except hidden files, locks and logs
    empty,       // a run that ended before its first checkpoint: a new start loses no training
    foreign,     // a folder with other files in it
    unfinished,  // a run that has not completed
    finished,
  };
  State state = State::nothing;
  // Differences between the run's config and the new config, in keys that decide the result.
  std::vector<std::string> differences;
  bool asks_for_more = false;     // the new config asks for more epochs, steps or time
  bool lacks_checkpoint = false;  // a finished run whose checkpoints are missing
};

// What is done with a directory: a run starts there, a run that has no checkpoint starts there again from the
// beginning, the run there is resumed, another directory is used, or nothing, since the run there is finished.
enum class RunVerdict { start, start_anew, resume, look_elsewhere, is_finished };

// Decides what to do with a directory. A directory that is set by --run-dir (`is_explicit`) is used or refused. For a
// default directory, the result may also be look_elsewhere: use the next default directory. `may_resume` is false for
// --resume never. If the directory is refused, throws Error{config}, whose text begins with the path; Error{data} if it
// holds a finished run whose checkpoints are missing.
RunVerdict decide(const FoundRun& found, bool is_explicit, bool may_resume, const std::string& path);

// Returns the differences of two resolved configs in keys that decide the results of a run so far: all keys except
// name, cluster, log, checkpoint, faults, resolved, the end of the run (train.epochs, max_steps, max_time), the
// reaction to steps that are not finite (train.on_not_finite, max_skipped), and the distribution over ranks
// (strategy.data, pipeline, place, schedule).
std::vector<std::string> deciding_differences(const Node& before, const Node& now);

// Whether the resolved config `now` lets a run train longer than `before` does.
bool ends_later(const Node& now, const Node& before);

// Reads the config.yaml of a run. Throws Error{data} if it cannot be read, and ConfigError if it is not a config.
Node load_run_config(const std::string& run);

// Inspects a run directory. Throws Error{resource} if it cannot be read or is not a folder, and the errors of
// load_run_config().
FoundRun inspect_run(const std::string& path, const Node& config);

struct RunRequest {
  std::string name;           // name in the config; the default directory is runs/<name>, runs/<name>-2, ...
  std::string explicit_path;  // --run-dir; empty for the default
  bool may_resume = true;
  Node config;  // resolved config
  Generation generation = {};
  bool has_copy = false;  // whether a copy in shared memory continues the run if it has no checkpoint
  bool yields = false;    // see RunLock
};

// The directory of a run. The constructor finds it; claim() is called once all other checks of the run have succeeded.
class RunDirectory {
 public:
  // Finds the directory, without creating or changing files. If the directory has a lock, it is taken from now on.
  // Throws Error{config} if decide() refuses the directory or another process trains there, and Error{resource} if it
  // cannot be read.
  explicit RunDirectory(RunRequest request);

  const std::string& path() const { return path_; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  // Whether the run in the directory is resumed from its newest checkpoint.
  bool resumes() const { return verdict_ == RunVerdict::resume; }
  // A text on how earlier runs of this name are treated; "" if there are none.
  const std::string& notice() const { return notice_; }
  // Whether the run uses another directory because runs/<name> holds another run.
  bool is_elsewhere() const { return is_elsewhere_; }
  // Whether the directory given by --run-dir holds a finished run, so that there is no work left.
  bool is_finished() const { return verdict_ == RunVerdict::is_finished; }

  // Makes this process the only writer of the directory until the object is destroyed: creates the folder, the lock,
  // config.yaml with `config`, and log.txt. Removes leftovers of killed writers, and the metrics.jsonl of a run that
  // starts from the beginning. Throws Error{resource} if the directory cannot be written, and Error{config} if another
  // run has begun there meanwhile; the directory is then left as it was.
  void claim(const Node& config);
  // Throws Error{peer} if a later start of the same run has claimed the directory.
  void require_current() const { lock_.require_held(path_); }

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
