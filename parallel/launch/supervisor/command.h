// The command, environment and temporary files of mpirun for one attempt to run the ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/host/scratch.h"
#include "parallel/launch/restart.h"
#include "parallel/launch/variables.h"

namespace trainctl {

class Mpirun;
struct LaunchPlan;

class MpirunCommand {
 public:
  // `command`: the command of each rank. `launch`: the name of this supervisor, see Situation. `restart`: the failed
  // attempt before this one, if there is one.
  // `shows_output`: whether the ranks' standard output is forwarded to this process's standard output. Throws
  // Error{config} if mpirun is not installed, Error{resource} if this host does not have the resources that the ranks
  // need to start.
  MpirunCommand(const LaunchPlan& plan, const std::vector<std::string>& command, const std::string& launch,
                const std::optional<Restart>& restart, const Mpirun& mpirun, bool shows_output);

  const std::vector<std::string>& words() const { return words_; }
  const Variables::Map& environment() const { return environment_; }
  const std::string& status_file() const { return status_file_; }
  // Returns whether the ranks may draw a progress bar on the user's terminal.
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
