// Reports once how a command ended: its answer on standard output, or its failure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/failure.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/situation.h"

namespace trainctl {

// Writes the answer to standard output. From now on requests to stop are ignored, so that the answer is the last text.
// Throws Error{resource} if standard output cannot be written.
void answer(std::string_view text);

// Flushes the output of stdio and std::cout; otherwise like answer().
void finish_output();

// Adds the rank, and its host unless `host` is empty, to the messages of a failure. If all ranks run on one host, under
// a supervisor that reports a single failure, errors of the config and of the data that name a file are left as they
// are: which of the ranks has found them first does not matter.
void name_rank(Failure& failure, const Situation& situation, int rank, const std::string& host);

// Reports the failure of this process: to its supervisor if there is one, otherwise on standard error and in the log,
// and with `json` as a document on standard output. `failed`: the rank that the failure is about. Returns the exit code
// of the failure, or 6 if the document cannot be written.
int report(const Failure& failure, bool json, const Situation& situation, const FailedRank& failed = {});

// Returns the message of StopAtOnce for a command that stops immediately.
std::string stop_message(bool json, const Situation& situation);

// The message of a run that was stopped before its first step. The exit code is 75: the same command can be started
// again.
inline constexpr std::string_view unstarted_text = "stopped before the first step";
// Returns the message of StopAtOnce for a run that does not train yet.
std::string unstarted_message(bool json, const Situation& situation);

// Returns the ranks that did not arrive or answer according to an error; empty for other errors.
std::vector<int> unresponsive_ranks(const std::string& error);

// Returns a text to append to an error of rank `own`: the hosts of the ranks that did not arrive or answer, such as ";
// rank 2 runs on h3". If no other host answers, the text adds that the host of rank `own` may be cut off. If no network
// interface of that host is up (`network_up` is false), the text says that it is cut off. `hosts`: the host of each
// rank. Returns "" if all ranks run on one host, or for other errors.
std::string unresponsive_hosts(const std::string& error, int own, const std::vector<std::string>& hosts,
                               bool network_up);

}  // namespace trainctl
