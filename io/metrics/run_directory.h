// The directory of a run: which one it is, and the right to write there.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"

namespace trainctl {

// What lies where a run would go.
struct FoundRun {
  enum class State {
    nothing,     // no folder, or one without a run in it
    foreign,     // a folder with other things in it
    unfinished,  // a run that has not completed
    finished,
  };
  State state = State::nothing;
  std::vector<std::string> differences;  // between its config and ours, in what decides the result
};

enum class RunVerdict { start, resume, look_elsewhere, is_finished };

// The rule: a stated directory (--run-dir) is taken or refused, the default one may give way to the next. `may_resume`
// is false for --resume never. Throws Error{config} that begins with the path.
RunVerdict decide(const FoundRun& found, bool stated, bool may_resume, const std::string& path);

// Where two resolved configs differ in what decides the result of a run: all but name, cluster, log, checkpoint, faults
// and what was found out (resolved).
std::vector<std::string> deciding_differences(const Node& before, const Node& now);

// Who writes in a run directory, as its lock says; "" where nobody does. It differs from run to run and host to host.
std::string lock_holder(const std::string& path);

struct RunRequest {
  std::string name;    // of the config: runs/<name>, or runs/<name>-2, ...
  std::string stated;  // --run-dir; empty for the default
  bool may_resume = true;
  Node config;  // resolved
};

// A run directory of which this process is the one writer, until the object goes. Its config.yaml is written, its
// log.txt is open, and what killed writers left is gone.
class RunDirectory {
 public:
  // Throws Error{config} where the rule refuses or another process runs there, Error{resource} where it cannot be
  // written.
  explicit RunDirectory(const RunRequest& request);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  // The run in it goes on from its newest checkpoint, if it has one.
  bool resumes() const { return verdict_ == RunVerdict::resume; }
  // The stated directory holds a finished run: say so and do nothing. It was left as it is.
  bool is_finished() const { return verdict_ == RunVerdict::is_finished; }

  // Replaces config.yaml: with what was found out since.
  void write_config(const Node& config) const;

 private:
  void take(const std::string& path);
  void release();

  std::string path_;
  RunVerdict verdict_ = RunVerdict::start;
  int lock_ = -1;
};

}  // namespace trainctl
