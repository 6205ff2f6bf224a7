// Runs the work of one rank: starts the rank, connects it with the other ranks, and ends it in all cases.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/flight_record.h"
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
  Cores cores;                                               // cores of this host before take_share()
  std::chrono::milliseconds deadline{0}, start_deadline{0};  // see RankCommand
  std::optional<std::int64_t> step = {};      // number of training steps that were done when the work failed
  std::unique_ptr<FlightRecord> flight = {};  // null: none; set_flight() sets it

  // Keeps a record, null or not, to which the rank's communicators, engines and loaders write from now on.
  void set_flight(std::unique_ptr<FlightRecord> record);
  // Begins another start, such as that of a later phase: until it ends, waits have the deadline of the start. Called by
  // all ranks.
  void begin_start();
  // Ends the start: waits until all ranks have called this function. From then on, all waits have the usual deadline.
  void end_start();
};

// The command that a rank runs.
struct RankCommand {
  RankValues values;                   // values that must be equal on all ranks; otherwise the run ends before its work
  std::optional<int> requested_ranks;  // number of ranks that the user asks for
  std::chrono::milliseconds deadline{0};        // deadline of all waits for other ranks; zero: no deadline
  std::chrono::milliseconds start_deadline{0};  // the same while the ranks start
  bool ends_start_itself = false;  // the work calls RankContext::end_start(); otherwise the start ends before the work
  std::chrono::milliseconds ending{0};  // time that rank 0 may need after the deadline at the end of a run
};

// Runs `work` as a rank, or alone; returns the exit code of `work`, which must be equal on all ranks. An error that all
// ranks throw together is reported by rank 0; an error of a single rank is reported by that rank, which ends all
// others. With `json` errors are also written as a document.
int run_as_rank(const Situation& situation, bool json, const RankCommand& command,
                const std::function<int(RankContext&)>& work);

// Prepares a process that trains, as a rank or alone; must be called before any thread starts. Throws Error{config} if
// the launcher's processes would not find each other. Binds this rank to its share of the cores, and makes a supervised
// rank end with its mpirun. Returns the number of threads that kernels may use.
int prepare_rank(const Situation& situation, const Variables& variables);

// Throws std::system_error if this process cannot start `count` threads at the same time. Called before libraries start
// threads, since libraries abort the process if they cannot.
void require_threads(int count);

}  // namespace trainctl
