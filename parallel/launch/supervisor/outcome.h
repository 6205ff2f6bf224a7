// How an attempt to run the ranks ended: judged from what its ranks and mpirun have left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/failure.h"
#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/ranks/status.h"

namespace trainctl {

enum class OutcomeKind {
  completed,
  stopped,             // on request, after a checkpoint
  stopped_unstarted,   // on request, before the first step
  interrupted,         // at once, since a request did not want to wait
  failed,              // the answer is no, or a defect of trainctl: exit code 1
  config_error,        // the kinds of errors that ranks report, see ErrorKind
  data_error,          //
  diverged,            //
  resource_error,      // also: what ran out while the ranks started
  peer_error,          // ranks disagree, or one saw a failure of another whose cause is not known
  rank_silent,         // a rank missed a deadline of the others
  rank_killed,         // by a signal
  rank_exited,         // with a code that is none of trainctl's
  host_lost,           // the host, or the network to it, failed during the run
  host_unreachable,    // a host cannot be reached from here or from another one
  start_overdue,       // the ranks did not start in time, and were ended
  stop_overdue,        // the ranks did not stop in time, and were ended
  launcher_failed,     // mpirun did not run the ranks, or says nothing that is known
  launcher_killed,     // mpirun was, by a signal
  launcher_suspended,  // a signal has stopped mpirun for too long, and the ranks were ended
};

// "rank_killed".
std::string_view name_of(OutcomeKind kind);

// What is not known is empty.
struct Outcome {
  OutcomeKind kind = OutcomeKind::completed;
  Failure end = {};                       // exit code and message; no message where the user has read it already
  std::optional<int> rank = {};           // the one that the outcome is about
  std::string host = {};                  // where it ran, or the host that was lost
  std::optional<int> signal = {};         // that killed the rank or mpirun
  std::optional<std::int64_t> step = {};  // steps of training that were done, as far as a rank has told
  std::string last_lines = {};            // of that rank's log
  std::string output = {};                // of the ranks, where it is held
};

// "rank_killed (exit code 5): rank 1 on n2, signal 9, step 120".
std::string to_string(const Outcome& outcome);

// What an attempt has left, after mpirun has ended by itself.
struct AttemptTraces {
  std::optional<RankStatus> status;
  MpirunReport report;
  std::string messages;              // mpirun's own words
  std::string held_errors;           // of the ranks, from before they were ready
  int mpirun_code = 0;               // 128 + n where signal n killed it
  bool asked_to_stop = false;        // by a request
  int output_error = 0;              // errno of standard output
  std::optional<std::int64_t> step;  // that rank 0 has told of last
};

// The ranks' status decides; without it what mpirun reports, in the user's terms; if it says nothing known, its first
// words. Without a status a run has failed, even if mpirun ends with code 0. `last_lines` and `output` stay empty.
Outcome outcome_of(const AttemptTraces& traces);

// What ran out, in words of MPI, PMIx or the loader: processes, open files, space or memory. Nothing where they name
// none.
std::optional<Failure> find_shortage(const std::string& text);

// "; the newest checkpoint is PATH", or that there is none, for a run whose log has this path; "" for "".
std::string newest_checkpoint(const std::string& log_path);

// The last lines that a rank has logged to its file beside the run's log, if that is here; else those of `written`,
// the end of what all ranks have written.
std::string last_lines(const std::string& log_path, std::optional<int> rank, const std::string& written);

}  // namespace trainctl
