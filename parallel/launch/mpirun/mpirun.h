// The launchers of MPI libraries: mpirun of OpenMPI 4 and 5, mpiexec of MPICH. Each has its own options and messages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm/environment.h"

namespace trainctl {

class Variables;
struct LaunchPlan;
struct LaunchRequest;

// The cause that a launcher reports when it ends a run. Unknown values are empty.
struct MpirunReport {
  std::optional<int> rank;     // the rank that ended first
  std::optional<int> process;  // process id of a rank, if the launcher does not name the rank; the launcher itself may
                               // have killed this process
  std::optional<int> exit_code;  // exit code of the rank or of its MPI_Abort
  std::optional<int> signal;     // signal that killed the rank
  std::string host;              // host of the rank, or the host that was lost
  bool host_lost = false;
  bool host_unreachable = false;  // a host cannot be reached; the launcher does not name it
  std::string not_reached;        // the host that `host` could not connect to

  bool names_cause() const { return rank || process || host_lost || host_unreachable || !not_reached.empty(); }
};

class Mpirun {
 public:
  using Words = std::vector<std::string>;

  virtual ~Mpirun() = default;

  // Returns the path of the installed launcher, or "".
  virtual std::string find() const = 0;
  // Returns the package that provides the launcher.
  virtual std::string package() const = 0;

  // Completes the plan: the command, the environment, and the networks on which the launcher and the ranks listen.
  virtual void compose(LaunchPlan& plan, const LaunchRequest& request) const = 0;
  // Return options that set a variable for all ranks: to the value that the launcher has, or to another value.
  virtual Words pass(const std::string& variable) const = 0;
  virtual Words give(const std::string& variable, const std::string& value) const = 0;
  // Returns the hosts of a plan as a file for --hostfile. It is needed if hosts have users, since the command line
  // cannot name users.
  virtual std::string hostfile(const LaunchPlan& plan) const = 0;
  // Returns options for one host that set the folders of the launcher's files and of the memory that ranks share.
  virtual Words keep_files(const std::string& temporary, const std::string& shared_memory) const = 0;
  // Returns options that start the launcher's daemons on other hosts through a command ("env NAME=VALUE").
  virtual Words start_daemons_through(const std::string& command, const Variables& variables) const = 0;
  // Returns the variable that sends the messages of the launcher, or of MPI in a rank, to another descriptor; "" if
  // there is no such variable.
  virtual std::string messages_variable() const = 0;

  // Returns the beginnings of the lines that the launcher prints between the ranks' output, if it writes a line in
  // several pieces. A caller holds such a line until it is complete, before it calls take_own_messages().
  virtual std::vector<std::string_view> line_beginnings() const { return {}; }
  // Removes the launcher's own messages from a text of standard output or standard error that has been read. Returns
  // the messages that show how the run ended.
  virtual std::string take_own_messages(std::string& text) = 0;
  // Finds the first cause of the end in the launcher's messages and the last output of the ranks.
  virtual MpirunReport report(std::string_view messages) const = 0;
};

// Create the launchers of OpenMPI and of MPICH.
std::unique_ptr<Mpirun> openmpi_mpirun(int version);  // 4 or 5
std::unique_ptr<Mpirun> mpich_mpirun();

// Returns the launcher of a library. Throws Error{config} if the library is not supported.
std::unique_ptr<Mpirun> mpirun_of(MpiLibrary library);

// Returns whether a host of the plan is reached as another user.
bool has_users(const LaunchPlan& plan);

// Returns the hosts of a plan with their maximum numbers of ranks, such as "a:2,b:2".
std::string host_list(const LaunchPlan& plan);

}  // namespace trainctl
