// The launchers of MPI libraries: mpirun of OpenMPI 4 and 5, mpiexec of MPICH. Each has options and words of its own.
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

// The cause that a launcher names when it takes a run down.
struct MpirunReport {
  std::optional<int> rank;       // that ended first
  std::optional<int> process;    // the number on its host, where the launcher does not name the rank; it may be that of
                                 // a rank that the launcher has killed since
  std::optional<int> exit_code;  // its exit code or that of its MPI_Abort
  std::optional<int> signal;     // that killed it
  std::string host;              // where, or the host that was lost
  bool host_lost = false;
  bool host_unreachable = false;  // one that the launcher does not name
  std::string not_reached;        // the host that `host` could not connect to

  bool names_cause() const { return rank || process || host_lost || host_unreachable || !not_reached.empty(); }
};

class Mpirun {
 public:
  using Words = std::vector<std::string>;

  virtual ~Mpirun() = default;

  // The path of the installed one, or "".
  virtual std::string find() const = 0;
  // What a user installs to have it.
  virtual std::string package() const = 0;

  // Completes the plan: its command, environment, and where the launcher and the ranks listen.
  virtual void compose(LaunchPlan& plan, const LaunchRequest& request) const = 0;
  // Words by which all ranks have a variable: with the value that it has for the launcher, or with another one.
  virtual Words pass(const std::string& variable) const = 0;
  virtual Words give(const std::string& variable, const std::string& value) const = 0;
  // The hosts of a plan as a file for --hostfile: where users stand in front of them, the command line cannot name
  // them.
  virtual std::string hostfile(const LaunchPlan& plan) const = 0;
  // Words by which, on one host, files are kept in these folders: the launcher's, and those of memory that ranks share.
  virtual Words keep_files(const std::string& temporary, const std::string& shared_memory) const = 0;
  // Words by which the launcher's daemons on other hosts are started through a command ("env NAME=VALUE").
  virtual Words start_daemons_through(const std::string& command, const Variables& variables) const = 0;
  // The variable that has the launcher, or a rank, write its own messages to another descriptor; "" where it has none.
  virtual std::string messages_variable() const = 0;

  // Takes what the launcher says beside the ranks' own output out of a text of standard output or standard error, as it
  // comes. Returns what of it tells how the run ended.
  virtual std::string take_own_words(std::string& text) = 0;
  // Finds the first cause in the launcher's own messages and the last words of the ranks.
  virtual MpirunReport report(std::string_view messages) const = 0;
};

std::unique_ptr<Mpirun> openmpi_mpirun(int version);  // 4 or 5
std::unique_ptr<Mpirun> mpich_mpirun();

// The launcher of a library. Throws Error{config} where it is not known.
std::unique_ptr<Mpirun> mpirun_of(MpiLibrary library);

// Whether the remote shell of a host of the plan is to be another user's.
bool has_users(const LaunchPlan& plan);

// "a:2,b:2": the hosts of a plan and the ranks that they can take.
std::string host_list(const LaunchPlan& plan);

}  // namespace trainctl
