// The frame around what one rank does: its first steps, joining the others, and leaving in order whatever happens.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "parallel/comm/same_on_all.h"
#include "parallel/comm/select.h"
#include "parallel/launch/host/cores.h"
#include "parallel/launch/situation.h"

namespace trainctl {

// The arguments of a rank's work.
struct RankContext {
  World& world;
  int threads = 1;
  const Situation& situation;
  Cores cores;                            // of this host, before this rank took its share
  std::optional<std::int64_t> step = {};  // steps of training that were done when the work failed
};

// The command that a rank was started with.
struct RankCommand {
  RankValues values;                      // the same on all ranks, or the run ends before its work
  std::optional<int> stated_ranks;        // how many the user wants
  std::chrono::milliseconds deadline{0};  // of all waits for other ranks; zero: none
  std::chrono::milliseconds ending{0};    // that rank 0 may need for itself, at the end, beyond the deadline
};

// Runs `work` as a rank, or alone; its result is the exit code, the same on all ranks. An error that all ranks throw
// together is reported by rank 0; an error of one rank alone is reported by that rank and takes the others down. With
// `json` as a document, too.
int run_as_rank(const Situation& situation, bool json, const RankCommand& command,
                const std::function<int(RankContext&)>& work);

// The first thing in a process that trains, rank or alone, before any thread starts: refuses launchers whose processes
// would not find each other (Error{config}), takes this rank's share of the cores, and sees to it that a supervised
// rank does not outlive its mpirun. What comes back is the number of threads that kernels may use.
int prepare_rank(const Situation& situation, const Variables& variables);

// Throws std::system_error if this process cannot start `count` threads at once. Called before libraries start threads,
// since those end the process if they cannot.
void require_threads(int count);

}  // namespace trainctl
