// How this process was started: by a user, or by a launcher as one of several ranks.
#pragma once

#include <optional>
#include <string>

#include "parallel/comm/environment.h"
#include "parallel/launch/restart.h"
#include "parallel/launch/variables.h"

namespace trainctl {

// The launcher that has started this process.
enum class StartedBy {
  user,     // outside MPI: this process decides the number of ranks, and supervises them unless there is only one
  mpirun,   // a rank that mpirun of this program's MPI has started; the supervisor or the user has started mpirun
  srun,     // a rank started by srun --mpi=pmix (OpenMPI) or --mpi=pmi2 (MPICH)
  unknown,  // one of several processes, each of which MPI would treat as "rank 0 of 1": see require_known_launcher
};

struct Situation {
  StartedBy started_by = StartedBy::user;
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;  // index of the rank among the ranks of this host
  int local_ranks = 1;
  bool supervised = false;              // whether a trainctl process waits for the status file
  bool bound = false;                   // whether the user's launcher has bound each rank to its own cores
  std::string status_file;              // empty: no supervisor waits for one
  std::optional<int> terminal_columns;  // supervised ranks: width of the user's terminal, if there is one
  std::string terminal;                 // supervised ranks: path of the terminal, if it belongs to this host
  bool output_on_terminal = false;      // supervised ranks: whether standard output is a terminal
  std::optional<Restart> restart;       // supervised ranks: why they were started again
  std::string launch;                   // supervised ranks: names the supervisor among all of all times and hosts
  int attempt = 1;                      // supervised ranks: how many times the supervisor has started ranks

  bool is_rank() const { return started_by == StartedBy::mpirun || started_by == StartedBy::srun; }
};

// Derives the situation from the environment variables, for a program that runs with this MPI library.
Situation find_situation(const Variables& variables, MpiLibrary mpi = mpi_library());

// Throws Error{config} with a remedy if the processes would not find each other: srun without the library's PMI, mpirun
// of another MPI, or torchrun. Must be called before MPI_Init.
void require_known_launcher(const Situation& situation, const Variables& variables, MpiLibrary mpi = mpi_library());

// Throws CollectiveError{config} if the user's own launcher has started a different number of ranks than the user asks
// for (`stated`; empty: any number).
void require_requested_ranks(const Situation& situation, const std::optional<int>& stated);

// Throws Error{config} if MPI found a different number of ranks than the launcher has started. Must be called after
// MPI_Init.
void require_world_size(const Situation& situation, int world_size);

}  // namespace trainctl
