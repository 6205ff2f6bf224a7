// Tests the effect of requests to stop over time.
#include "parallel/launch/supervisor/stopping.h"

#include <signal.h>

#include "parallel/launch/ranks/report.h"
#include "test/catch.h"

namespace trainctl::stopping_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const AskedRanks::Clock::time_point start = AskedRanks::Clock::now();

struct Stopping {
  StopRequests requests;
  AskedRanks ranks;
};

// Ranks that have run since `start`, with requests as pairs of a signal and milliseconds after `start`.
Stopping asked(const std::vector<std::pair<int, int>>& signals) {
  Stopping stopping;
  stopping.ranks.started = start;
  stopping.ranks.ready = stopping.ranks.relayed = true;
  for (const auto& [signal, after] : signals) note_request(stopping.requests, signal, start + milliseconds(after));
  return stopping;
}

StopAction action(const Stopping& stopping, int after) {
  return stop_action(stopping.requests, stopping.ranks, start + milliseconds(after));
}

TEST_CASE("without a request the supervisor waits") {
  CHECK(action(asked({}), 0) == StopAction::wait);
  CHECK(action(asked({}), 1'000'000) == StopAction::wait);
}

TEST_CASE("a request is relayed to ranks that handle it; ranks that do not handle it yet are ended untrained") {
  Stopping stopping = asked({{SIGTERM, 100}});
  stopping.ranks.relayed = false;
  CHECK(action(stopping, 100) == StopAction::relay);
  stopping.ranks.ready = false;
  CHECK(action(stopping, 100) == StopAction::end_unstarted);
  stopping.ranks.sees_ranks = false;  // unknown; after some seconds it is assumed that they handle it
  CHECK(action(stopping, 100) == StopAction::wait);
  CHECK(action(stopping, 4999) == StopAction::wait);
  CHECK(action(stopping, 5000) == StopAction::relay);
}

TEST_CASE("a stop ends 20 s after its request, within SLURM's and Kubernetes' 30 s") {
  const Stopping stopping = asked({{SIGTERM, 1000}});
  CHECK(action(stopping, 1000) == StopAction::wait);
  CHECK(action(stopping, 20999) == StopAction::wait);
  CHECK(action(stopping, 21000) == StopAction::end_late);
}

TEST_CASE("ranks with long steps have twice a step's time, ranks that save cluster.timeout or a minute") {
  Stopping stopping = asked({{SIGTERM, 0}});
  stopping.ranks.needs.seconds = 3;
  CHECK(time_to_stop(stopping.requests, stopping.ranks) == seconds(20));
  stopping.ranks.needs.seconds = 45;
  CHECK(time_to_stop(stopping.requests, stopping.ranks) == seconds(90));
  stopping.ranks.needs.saves = true;
  stopping.ranks.patience = seconds(5);
  CHECK(time_to_stop(stopping.requests, stopping.ranks) == seconds(60));
  stopping.ranks.patience = seconds(300);
  CHECK(time_to_stop(stopping.requests, stopping.ranks) == seconds(300));
  stopping.ranks.patience = seconds(0);  // unlimited, but a stop is limited
  CHECK(time_to_stop(stopping.requests, stopping.ranks) == seconds(600));
}

TEST_CASE("the time to stop starts again when ranks begin or end to save") {
  Stopping stopping = asked({{SIGTERM, 0}});
  stopping.ranks.needs_changed = start + seconds(15);
  CHECK(action(stopping, 34'999) == StopAction::wait);
  CHECK(action(stopping, 35'000) == StopAction::end_late);
}

TEST_CASE("a second SIGINT ends ranks immediately, other second signals do so only if they come 2 s later") {
  CHECK(action(asked({{SIGINT, 0}, {SIGINT, 10}}), 20) == StopAction::end_at_once);
  CHECK(action(asked({{SIGTERM, 0}, {SIGINT, 10}}), 20) == StopAction::end_at_once);
  CHECK(action(asked({{SIGTERM, 0}, {SIGTERM, 10}, {SIGHUP, 1999}}), 2000) == StopAction::wait);
  CHECK(action(asked({{SIGTERM, 0}, {SIGTERM, 2000}}), 2000) == StopAction::end_at_once);
  CHECK(action(asked({{SIGINT, 0}, {SIGUSR1, 2000}}), 2000) == StopAction::end_at_once);
}

TEST_CASE("a checkpoint that is being written outlives a second SIGTERM for 20 s, a second SIGINT not at all") {
  Stopping stopping = asked({{SIGUSR1, 0}, {SIGTERM, 40'000}, {SIGTERM, 50'000}});
  stopping.ranks.needs.saves = true;
  CHECK(action(stopping, 59'999) == StopAction::wait);
  CHECK(action(stopping, 60'000) == StopAction::end_late);
  note_request(stopping.requests, SIGINT, start + seconds(55));
  CHECK(action(stopping, 55'000) == StopAction::end_at_once);
}

TEST_CASE("requests outlive the ranks that they reached: ranks of a later attempt get them immediately") {
  Stopping stopping = asked({{SIGTERM, 100}});
  stopping.ranks = {.started = start + seconds(30)};
  CHECK(action(stopping, 30'000) == StopAction::end_unstarted);
  stopping.ranks.ready = true;
  CHECK(action(stopping, 30'000) == StopAction::relay);
}

TEST_CASE("ranks that did not arrive or answer are read from the error of a communicator") {
  CHECK(unresponsive_ranks("all_reduce: rank 3 on h3 did not arrive within 6 s") == std::vector<int>{3});
  CHECK(unresponsive_ranks("rank 0 on h1, rank 1 on h1, rank 12 on h2 did not arrive within 6 s") ==
        std::vector<int>{0, 1, 12});
  CHECK(unresponsive_ranks("barrier: ranks 2, 3 did not answer within 6 s") == std::vector<int>{2, 3});
  CHECK(unresponsive_ranks("barrier: some rank did not arrive within 6 s").empty());
  CHECK(unresponsive_ranks("rank 3 has given up").empty());
}

TEST_CASE("hosts of unresponsive ranks are named, and a host that no other host answers may be cut off itself") {
  const std::vector<std::string> hosts{"h1", "h1", "h2", "h3"};
  CHECK(unresponsive_hosts("all_reduce: rank 3 on h3 did not arrive within 6 s", 0, hosts, true).empty());
  CHECK(
      unresponsive_hosts("all_reduce: rank 0 on h1, rank 1 on h1, rank 2 on h2 did not arrive within 6 s; find out on",
                         3, hosts, true) == "; no other host answers: h3 itself may be cut off");
  CHECK(unresponsive_hosts("all_reduce: rank 3 did not answer within 6 s", 0, hosts, true) == "; rank 3 runs on h3");
  CHECK(unresponsive_hosts("barrier: ranks 2, 3 did not arrive within 6 s", 1, hosts, true) ==
        "; rank 2 runs on h2; rank 3 runs on h3; no other host answers: h1 itself may be cut off");
  CHECK(unresponsive_hosts("barrier: ranks 0, 1, 2 did not arrive within 6 s", 3, hosts, true) ==
        "; rank 0 runs on h1; rank 1 runs on h1; rank 2 runs on h2; no other host answers: h3 itself may be cut off");
  CHECK(unresponsive_hosts("barrier: rank 0 on h1 did not arrive within 6 s", 3, hosts, false) ==
        "; it is h3 that is cut off: no network interface of it is up");
  CHECK(unresponsive_hosts("rank 9 did not answer within 6 s", 0, hosts, true).empty());
  CHECK(unresponsive_hosts("the disk is full", 0, hosts, true).empty());
  CHECK(unresponsive_hosts("rank 1 did not arrive within 6 s", 0, {"h1", "h1"}, true).empty());
}

}  // namespace
}  // namespace trainctl::stopping_test
