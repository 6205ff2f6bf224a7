// The program as a user runs it: a process of its own in a folder of its own, watched from outside.
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

// A folder that goes away, with what runs in it leave there.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  // Writes a file and the folders that it lies in; returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::string& path);

// Polls until it holds; false after the time limit.
bool comes_true(const std::function<bool()>& condition, int seconds = time_limit);

class Command {
 public:
  // Starts `trainctl ARGUMENTS...` in a folder inside `folder` (default: itself); caches and temporary files go below
  // it too. `variables` are NAME=VALUE.
  Command(const Folder& folder, const std::vector<std::string>& arguments, const std::string& inside = ".",
          const std::vector<std::string>& variables = {});
  ~Command();  // ends what is left of it
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // The exit code; -signal where one has ended it, -1000 after the time limit.
  int wait();
  void send(int signal) const;
  // Its ranks that run, by number; a lone process has none.
  std::map<int, pid_t> ranks() const;
  // Whether no process of it is left, a moment after its end.
  bool left_no_process() const;
  // Waits until standard error contains the text.
  bool says(const std::string& text) const;

  std::string out() const { return read_file(output_ + ".out"); }
  std::string errors() const { return read_file(output_ + ".err"); }

 private:
  std::vector<pid_t> processes() const;

  std::string mark_;  // a variable of the environment that all its processes inherit
  std::string output_;
  pid_t pid_ = -1;
};

// What a finished command has left.
struct Finished {
  int code = 0;
  std::string out;
  std::string errors;
};
Finished trainctl(const Folder& folder, const std::vector<std::string>& arguments, const std::string& inside = ".");

// The lines of a metrics.jsonl, all or those of one event.
std::vector<Json> events(const std::string& run_directory, const std::string& event = "");

// The losses of a metrics.jsonl by step, as far as they were logged.
std::map<std::int64_t, double> step_losses(const std::string& run_directory);

// The last lines of an output.
std::string tail(const std::string& text);
bool contains(const std::string& text, const std::string& part);
// How often `part` stands in `text`.
int count(const std::string& text, const std::string& part);

}  // namespace trainctl::test
