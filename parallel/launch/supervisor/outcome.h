// The outcome of an attempt to run the ranks, derived from the reports of its ranks and of mpirun.
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
  interrupted,         // immediately, as a request demanded
  failed,              // exit code 1: a negative answer of the command, or a defect of trainctl
  config_error,        // the kinds of errors that ranks report, see ErrorKind
  data_error,          //
  diverged,            //
  resource_error,      // also: a resource ran out while the ranks started
  peer_error,          // ranks disagree, or a rank failed for an unknown reason
  rank_silent,         // a rank did not answer the others in time
  rank_hung,           // a rank made no progress in time, while others waited for it (cluster.hang_timeout)
  rank_killed,         // a rank was killed by a signal
  rank_exited,         // a rank ended with an exit code that trainctl does not use
  host_lost,           // the host, or the network to it, failed during the run
  host_unreachable,    // a host cannot be reached from here or from another host
  start_overdue,       // the ranks did not start in time, and were ended
  stop_overdue,        // the ranks did not stop in time, and were ended
  launcher_failed,     // mpirun did not run the ranks, or failed for an unknown reason
  launcher_killed,     // mpirun was killed by a signal
  launcher_suspended,  // mpirun was suspended by a signal for too long, and the ranks were ended
};

// Returns the name of a kind, such as "rank_killed".
std::string_view name_of(OutcomeKind kind);

// The outcome of an attempt; unknown values are empty.
struct Outcome {
  OutcomeKind kind = OutcomeKind::completed;
  Failure end = {};                       // exit code and message; no message if the user has seen it already
  std::optional<int> rank = {};           // the rank that the outcome is about
  std::string host = {};                  // the host of the rank, or the host that was lost
  std::optional<int> signal = {};         // signal that killed the rank or mpirun
  std::optional<std::int64_t> step = {};  // number of training steps that were done, if a rank has reported it
  std::string last_lines = {};            // end of that rank's log
  std::string output = {};                // output of the ranks, if it is held
};

// Returns the outcome as a text, such as "rank_killed (exit code 5): rank 1 on n2, signal 9, step 120".
std::string to_string(const Outcome& outcome);

// The information about an attempt after mpirun has ended by itself.
struct AttemptTraces {
  std::optional<RankStatus> status;
  MpirunReport report;
  std::string messages;              // mpirun's own messages
  std::string held_errors;           // standard error of the ranks from before they were ready
  int mpirun_code = 0;               // 128 + n if signal n killed it
  bool asked_to_stop = false;        // whether there was a request to stop
  int output_error = 0;              // errno of writing standard output
  std::optional<std::int64_t> step;  // last step that rank 0 has reported
  bool memory_ran_out = false;       // whether the kernel of this host has killed a process for lack of memory
};

// Returns the outcome of an attempt according to the ranks' status, or, without a status, according to mpirun's report.
// If mpirun reports no known cause, the outcome has mpirun's first messages. Without a status a run has failed, even if
// mpirun ends with code 0. `last_lines` and `output` are left empty.
Outcome outcome_of(const AttemptTraces& traces);

// Makes an outcome without a failure one: standard output could not be written with this errno. Does nothing if there
// is no error, or if the reader has closed its end.
void note_output_error(Outcome& outcome, int error);

// Returns a failure that names the resource that ran out according to messages of MPI, PMIx or the loader: processes,
// open files, space or memory. Empty if the messages name no such resource.
std::optional<Failure> find_shortage(const std::string& text);

// Returns "; the newest checkpoint is PATH", or a text that no checkpoint was written, for the run with this path of
// the log; "" for an empty path.
std::string newest_checkpoint(const std::string& log_path);

// Returns the last lines of a rank's log file if the file is on this host, otherwise the last lines of `written`, the
// end of the output of all ranks.
std::string last_lines(const std::string& log_path, std::optional<int> rank, const std::string& written);

}  // namespace trainctl
