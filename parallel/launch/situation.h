// How this process was started: by a user, or as a rank of something.
#pragma once

#include <optional>
#include <string>

#include "parallel/comm/environment.h"
#include "parallel/launch/variables.h"

namespace trainctl {

enum class StartedBy {
  user,     // outside MPI: decides how many ranks there are, and is their supervisor unless there is only one
  mpirun,   // a rank of the mpirun of this program's MPI: the supervisor's, or the user's own
  srun,     // a rank of srun --mpi=pmix (OpenMPI) or --mpi=pmi2 (MPICH)
  unknown,  // N processes that MPI would take for N times "rank 0 of 1": see require_known_launcher
};

struct Situation {
  StartedBy started_by = StartedBy::user;
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;  // among the ranks of this host
  int local_ranks = 1;
  bool supervised = false;              // by a trainctl that waits for the status file
  bool bound = false;                   // the user's launcher has given each rank cores of its own
  std::string status_file;              // empty: nobody waits for one
  std::optional<int> terminal_columns;  // supervised ranks: the width of the user's terminal, where there is one,
  std::string terminal;                 // and its path, where it is of this host
  bool output_on_terminal = false;      // supervised ranks: what they write to standard output comes to a terminal

  bool is_rank() const { return started_by == StartedBy::mpirun || started_by == StartedBy::srun; }
};

// Derives the situation from the environment alone, for a program that runs with this MPI library.
Situation find_situation(const Variables& variables, MpiLibrary mpi = mpi_library());

// Throws Error{config} with the remedy where the processes would not find each other: srun without the library's PMI,
// the mpirun of another MPI, or torchrun. Call it before MPI_Init.
void require_known_launcher(const Situation& situation, const Variables& variables, MpiLibrary mpi = mpi_library());

// Throws CollectiveError{config} where a user's own launcher has started another number of ranks than the user states.
void require_stated_ranks(const Situation& situation, const std::optional<int>& stated);

// Throws Error{config} where MPI found another number of ranks than the launcher has started. Call it after MPI_Init.
void require_world_size(const Situation& situation, int world_size);

}  // namespace trainctl
