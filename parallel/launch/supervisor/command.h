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

// What the ranks of an attempt are told about their supervisor.
struct RanksSetting {
  std::string launch = {};      // the name of the supervisor, see Situation
  bool shows_output = true;     // whether their standard output is forwarded to this process's standard output
  bool records_flight = false;  // whether they keep their flight records in a folder of the supervisor
};

class MpirunCommand {
 public:
  // `command`: the command of each rank. `restart`: the failed attempt before this one, if there is one. Throws
  // Error{config} if mpirun is not installed, Error{resource} if this host does not have the resources that the ranks
  // need to start.
  MpirunCommand(const LaunchPlan& plan, const std::vector<std::string>& command, const std::optional<Restart>& restart,
                const Mpirun& mpirun, const RanksSetting& setting);

  const std::vector<std::string>& words() const { return words_; }
  const Variables::Map& environment() const { return environment_; }
  const std::string& status_file() const { return status_file_; }
  // Returns the folder of the flight records, which has the same path on all hosts; "" without records.
  const std::string& flight_folder() const { return flight_folder_; }
  // Returns the folders for temporary files on this host, which are removed with this object.
  std::vector<std::string> folders() const;
  // Returns whether the ranks may draw a progress bar on the user's terminal.
  bool shows_bar() const { return shows_bar_; }

 private:
  void append(const std::vector<std::string>& more);
  void pass(const std::string& variable, const std::string& value);
  void preload_launcher(const LaunchPlan& plan);
  void make_flight_folder(const LaunchPlan& plan, const std::string& temporary);

  const Mpirun& mpirun_;
  std::optional<ScratchFolder> scratch_, memory_;
  std::optional<ScratchFolder> flight_;  // the folder of the flight records on several hosts
  std::string status_file_, flight_folder_;
  std::vector<std::string> words_;
  Variables::Map environment_;
  bool shows_bar_ = false;
};

}  // namespace trainctl
