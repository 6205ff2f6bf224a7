// Reports how a command ended, once: its answer on standard output, or its failure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/failure.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/situation.h"

namespace trainctl {

// Writes the answer. From here on requests to stop are ignored, so that nothing follows it. Throws Error{resource}
// where standard output cannot be written.
void answer(std::string_view text);

// Sees to it that what was printed through stdio and std::cout has arrived, as answer() does.
void finish_output();

// Adds to the messages of a rank's failure which rank it is, and on which host, unless `host` is empty.
void name_rank(Failure& failure, int rank, const std::string& host);

// Reports how this process failed: to its supervisor where there is one, else on standard error and in the log, and
// with `json` as a document on standard output. `failed`: the rank that the failure is about. Returns the exit code:
// that of the failure, or 6 where the document cannot be written.
int report(const Failure& failure, bool json, const Situation& situation, const FailedRank& failed = {});

// The message of StopAtOnce for a command: a request to stop writes it at once.
std::string stop_message(bool json, const Situation& situation);

// How a run ends that was asked to stop before it trains: with exit code 75, since it may be started again as it is.
inline constexpr std::string_view unstarted_words = "stopped before the first step";
// The message of StopAtOnce for a run until it trains.
std::string unstarted_message(bool json, const Situation& situation);

// The ranks that did not arrive or answer; none if the error is another one.
std::vector<int> unresponsive_ranks(const std::string& error);

// "; rank 2 runs on h3": for the error of rank `own` that names ranks which did not arrive or answer, the hosts of
// these; and if no other host is heard of, that its own may be the one that is cut off. If no network interface of its
// own host is up (`network_up`), that this is the one. `hosts`: of all ranks. "" if all ranks run on one host, or the
// error is another one.
std::string unresponsive_hosts(const std::string& error, int own, const std::vector<std::string>& hosts,
                               bool network_up);

}  // namespace trainctl
