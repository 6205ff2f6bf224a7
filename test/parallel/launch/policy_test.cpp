// Tests the policy of restarts: which failures are followed by another attempt, when, and when the run ends.
#include "parallel/launch/supervisor/policy.h"

#include "test/catch.h"

namespace trainctl {
namespace {

Outcome killed(std::optional<std::int64_t> step) {
  return {.kind = OutcomeKind::rank_killed, .end = {5}, .step = step};
}

TEST_CASE("a run starts again after the death or the silence of a rank, a host or the launcher") {
  using enum OutcomeKind;
  for (const OutcomeKind kind :
       {rank_silent, rank_hung, rank_killed, rank_exited, host_lost, launcher_killed, launcher_suspended}) {
    CAPTURE(name_of(kind));
    CHECK(restart_policy(1)({{.kind = kind}}, {}).again);
    CHECK_FALSE(restart_policy(0)({{.kind = kind}}, {}).again);
  }
  for (const OutcomeKind kind : {completed, stopped, stopped_unstarted, interrupted, failed, config_error, data_error,
                                 diverged, resource_error, stop_overdue}) {
    CAPTURE(name_of(kind));
    CHECK_FALSE(restart_policy(9)({{.kind = kind, .step = 5}}, {}).again);
  }
}

TEST_CASE("a start that fails is an error of the setup unless ranks have trained before") {
  using enum OutcomeKind;
  for (const OutcomeKind kind : {peer_error, launcher_failed, host_unreachable, start_overdue}) {
    CAPTURE(name_of(kind));
    CHECK_FALSE(restart_policy(9)({{.kind = kind}}, {}).again);
    CHECK(restart_policy(9)({{.kind = kind, .step = 5}}, {}).again);
    CHECK(restart_policy(9)({killed(5), {.kind = kind}}, {}).again);
  }
}

TEST_CASE("a run has at most the given number of restarts, and says so when it ends") {
  const Policy twice = restart_policy(2);
  CHECK(twice({killed(5), killed(9)}, {}).again);
  const NextAction end = twice({killed(5), killed(9), killed(12)}, {});
  CHECK_FALSE(end.again);
  CHECK(end.why_not == "the run has started again 2 times, which is the most (cluster.restarts)");
}

TEST_CASE("a run ends after four attempts in a row without progress, with growing delays before") {
  const Policy policy = restart_policy(100);
  using std::chrono::seconds;
  std::vector<Outcome> outcomes = {killed(5)};
  for (const seconds delay : {seconds(0), seconds(1), seconds(2), seconds(4)}) {
    const NextAction next = policy(outcomes, {});
    CHECK(next.again);
    CHECK(next.delay == delay);
    outcomes.push_back(killed(outcomes.size() % 2 == 0 ? 5 : 4));
  }
  const NextAction end = policy(outcomes, {});
  CHECK_FALSE(end.again);
  CHECK(end.why_not == "4 attempts in a row made no progress");
  outcomes.back() = killed(6);
  CHECK(policy(outcomes, {}).again);
  CHECK(policy(outcomes, {}).delay == seconds(0));
  CHECK(policy({killed({})}, {}).delay == seconds(1));  // died before its first step
}

TEST_CASE("a request to stop ends the run") {
  StopRequests requests;
  note_request(requests, 15, std::chrono::steady_clock::now());
  CHECK_FALSE(restart_policy(9)({killed(5)}, requests).again);
}

}  // namespace
}  // namespace trainctl
