// mpirun's command, its environment and its temporary files, for one attempt to run the ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/host/scratch.h"
#include "parallel/launch/variables.h"

namespace trainctl {

class Mpirun;
struct LaunchPlan;

class MpirunCommand {
 public:
  // `command`: what each rank runs. `shows_output`: the ranks' standard output is passed on to that of this process.
  // Throws Error{config} where there is no mpirun, Error{resource} where this host lacks what the ranks need to start.
  MpirunCommand(const LaunchPlan& plan, const std::vector<std::string>& command, const Mpirun& mpirun,
                bool shows_output);

  const std::vector<std::string>& words() const { return words_; }
  const Variables::Map& environment() const { return environment_; }
  const std::string& status_file() const { return status_file_; }
  // The ranks may draw a bar of progress on the user's terminal.
  bool shows_bar() const { return shows_bar_; }

 private:
  void append(const std::vector<std::string>& more);
  void pass(const std::string& variable, const std::string& value);
  void preload_launcher(const LaunchPlan& plan);

  const Mpirun& mpirun_;
  std::optional<ScratchFolder> scratch_, memory_;
  std::string status_file_;
  std::vector<std::string> words_;
  Variables::Map environment_;
  bool shows_bar_ = false;
};

}  // namespace trainctl
