// Runs the program like a user: as a process in its own folder, watched from outside.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "test/support/time_limit.h"

namespace trainctl::test {

// A temporary folder that is removed with all its files.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  // Writes a file, creates its parent folders and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::string& path);

// Polls until the condition is true; returns false after the time limit.
bool comes_true(const std::function<bool()>& condition, int seconds = time_limit);

class Command {
 public:
  // Starts `trainctl ARGUMENTS...` in the folder `inside` of `folder` (by default `folder` itself). Caches and
  // temporary files are in `folder`, too. `variables` are NAME=VALUE.
  Command(const Folder& folder, const std::vector<std::string>& arguments, const std::string& inside = ".",
          const std::vector<std::string>& variables = {});
  ~Command();  // kills its processes
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Waits for the end. Returns the exit code, -signal if a signal ended it, or -1000 after the time limit.
  int wait();
  void send(int signal) const;
  void send_to_all(int signal) const;  // to all its processes
  // Whether one of its processes has this word in its command line.
  bool starts(const std::string& word) const;
  // Whether the process that was started blocks the signal, as the launcher does while it watches its ranks.
  bool blocks(int signal) const;
  // The processes of its running ranks, by rank. A run of a single process has none.
  std::map<int, pid_t> ranks() const;
  // Whether none of its processes is left; waits up to 10 s for their end.
  bool left_no_process() const;
  // Waits until standard error contains the text this often; returns false after the time limit or, if the command has
  // ended without it, at once.
  bool says(const std::string& text, int times = 1) const;
  bool ended() const;  // whether the process that was started has ended

  std::string out() const { return read_file(output_ + ".out"); }
  std::string errors() const { return read_file(output_ + ".err"); }

 private:
  std::vector<pid_t> processes() const;

  std::string mark_;  // value of an environment variable that all its processes inherit
  std::string output_;
  pid_t pid_ = -1;
};

// The exit code and the output of a finished command.
struct Finished {
  int code = 0;
  std::string out;
  std::string errors;
};
Finished trainctl(const Folder& folder, const std::vector<std::string>& arguments, const std::string& inside = ".");

// The events in a run's metrics.jsonl: all, or those of one kind.
std::vector<Json> events(const std::string& run_directory, const std::string& event = "");

// The logged losses in a run's metrics.jsonl, by step.
std::map<std::int64_t, double> step_losses(const std::string& run_directory);

// The last lines of an output.
std::string tail(const std::string& text);
bool contains(const std::string& text, const std::string& part);
// How often `part` occurs in `text`.
int count(const std::string& text, const std::string& part);

}  // namespace trainctl::test
