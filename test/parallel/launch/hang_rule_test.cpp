// Tests when ranks hang, and which of them the others wait for, on a simulated clock.
#include "parallel/launch/watch/hang_rule.h"

#include <set>

#include "core/base/format.h"
#include "parallel/launch/watch/hang_report.h"
#include "parallel/launch/watch/lease.h"
#include "test/catch.h"

namespace trainctl::hang_rule_test {
namespace {

// Ranks that train in steps of equal length, each on its own host h0, h1, ..., and report once a second.
class Training {
 public:
  Training(int ranks, double step_seconds, const HangTimeout& timeout = HangChoice::automatic)
      : rule(timeout, ranks), step_seconds_(step_seconds), views_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      views_[static_cast<std::size_t>(rank)] = {.rank = rank, .process = 100 + rank, .training = Activity::computing};
    }
  }

  RankView& view(int rank) { return views_[static_cast<std::size_t>(rank)]; }

  // Lets time pass, in which all ranks but `stuck` report; those make progress while `moves`.
  void pass(double seconds, bool moves) {
    for (const double end = now + seconds; now < end; now += 1) {
      rule.tick(now);
      for (RankView& each : views_) {
        if (moves) {
          ++each.progress;
          each.step = static_cast<std::int64_t>(now / step_seconds_);
          each.seconds = 0;
        }
        if (!silent.contains(each.rank)) rule.note(each, format("h{}", each.rank), now);
      }
    }
  }

  // The seconds until the ranks hang, when nothing moves any more; -1 if they do not within 1,000 s.
  double seconds_until_hang(const std::vector<std::string>& silent_hosts = {}) {
    const double begin = now;
    while (now - begin < 1000) {
      if (rule.hangs(now, silent_hosts)) return now - begin;
      pass(1, false);
    }
    return -1;
  }

  void wait_for_others(int rank) {
    view(rank).training = view(rank).activity = Activity::communicating;
    view(rank).waits = view(rank).in_message = true;
    view(rank).text = "all_reduce of bucket 3 (conv5 ... fc1)";
    ++view(rank).progress;
  }

  HangRule rule;
  double now = 1000;
  std::set<int> silent;

 private:
  double step_seconds_;
  std::vector<RankView> views_;
};

TEST_CASE("the limit is 10 s for short steps, and 20 steps for long ones") {
  Training fast(2, 0.01), slow(2, 3), given(2, 3, Seconds{7});
  CHECK_FALSE(fast.rule.limit());
  for (Training* each : {&fast, &slow, &given}) each->pass(60, true);
  CHECK(fast.rule.limit() == 10);
  CHECK(slow.rule.limit().value() == Approx(60).margin(1));
  CHECK(given.rule.limit() == 7);
  CHECK(fast.seconds_until_hang() == Approx(10).margin(1));
  CHECK(slow.seconds_until_hang() == Approx(60).margin(3));
  CHECK(given.seconds_until_hang() == Approx(7).margin(1));
}

TEST_CASE("ranks that make progress do not hang, and a pause makes the limit longer") {
  Training run(3, 0.1);
  run.pass(30, true);
  for (int i = 0; i < 20; ++i) {
    run.pass(8, false);
    CHECK_FALSE(run.rule.hangs(run.now));
    run.pass(2, true);
  }
  CHECK(run.rule.limit().value() == Approx(27).margin(3));
}

TEST_CASE("a single long pause does not change the limit, and ranks that pause together pause once") {
  Training run(3, 0.1);
  run.pass(30, true);
  run.pass(300, false);
  run.pass(30, true);
  CHECK(run.rule.limit() == 10);
  run.pass(6, false);
  run.pass(30, true);
  CHECK(run.rule.limit().value() == Approx(20).margin(4));
  for (int i = 0; i < 16; ++i) {  // the last pauses count
    run.pass(5, false);
    run.pass(30, true);
  }
  CHECK(run.rule.limit().value() == Approx(17).margin(3));
}

TEST_CASE("no rank hangs before the first steps, or while it starts, saves or ends, unless its process is stopped") {
  Training start(2, 1);
  start.pass(1, true);
  CHECK(start.seconds_until_hang() == -1);
  const Activity activity = GENERATE(Activity::starting, Activity::saving, Activity::ended);
  Training run(2, 0.1);
  run.pass(20, true);
  run.view(1).training = activity;
  run.wait_for_others(0);
  run.pass(12, false);
  CHECK(run.rule.is_suspicious(run.now));
  CHECK(run.seconds_until_hang() == -1);
}

TEST_CASE("ranks that hang after a few fast steps hang, since their records tell the time of a step") {
  Training run(2, 0.1);
  for (const int rank : {0, 1}) run.view(rank).step = 21;
  run.view(0).step_seconds = run.view(1).step_seconds = 0.002;
  run.wait_for_others(0);
  run.pass(1, false);
  CHECK(run.seconds_until_hang() == Approx(10).margin(2));
}

TEST_CASE("a rank that evaluates, or works for itself between steps, has six times the limit") {
  Training run(2, 0.1);
  run.pass(20, true);
  run.view(1).training = GENERATE(Activity::evaluating, Activity::waiting_for_ranks);
  run.wait_for_others(0);
  run.pass(1, false);
  CHECK(run.seconds_until_hang() == Approx(60).margin(2));
}

TEST_CASE("a rank that stands still while another waits is named, also while further ranks make progress") {
  Training run(4, 0.1);
  run.pass(20, true);
  run.wait_for_others(0);
  run.view(2).training = run.view(2).activity = Activity::reading_data;
  run.view(2).text = "img_0412.jpg";
  double seconds = 0;
  for (; seconds < 100 && !run.rule.hangs(run.now); ++seconds) {
    run.pass(1, false);
    for (const int moving : {1, 3}) {
      ++run.view(moving).progress;
      run.rule.note(run.view(moving), format("h{}", moving), run.now);
    }
  }
  CHECK(seconds == Approx(10).margin(2));
  CHECK(awaited_ranks(run.rule, run.now, {}, {}) == std::vector<int>{2});
}

TEST_CASE("a suspended supervisor blames nobody") {
  Training run(2, 0.1);
  run.pass(20, true);
  run.now += 3600;  // the machine slept
  run.rule.tick(run.now);
  CHECK_FALSE(run.rule.hangs(run.now));
  CHECK(run.seconds_until_hang() == Approx(10).margin(1));
}

TEST_CASE("the ranks of a silent host are named, but not if all hosts are silent") {
  Training run(3, 0.1);
  run.pass(20, true);
  run.silent = {2};
  run.wait_for_others(0);
  run.wait_for_others(1);
  run.pass(1, false);
  CHECK(run.seconds_until_hang({"h2"}) == Approx(10).margin(2));
  CHECK(awaited_ranks(run.rule, run.now, {}, {"h2"}) == std::vector<int>{2});
  const Outcome outcome = hang_outcome(run.rule, run.now, {.silent_hosts = {"h2"}});
  CHECK(outcome.kind == OutcomeKind::host_lost);
  CHECK(outcome.host == "h2");
  CHECK(outcome.end.message.find("waiting for rank 2 on h2: its host has not answered for 1") != std::string::npos);
  Training all(2, 0.1);
  all.pass(20, true);
  CHECK(all.seconds_until_hang({"h0", "h1"}) == -1);
}

TEST_CASE("among ranks that all wait, a stopped process or the rank that is behind is named") {
  Training run(3, 0.1);
  run.pass(20, true);
  for (int rank = 0; rank < 3; ++rank) run.wait_for_others(rank);
  run.pass(12, false);
  REQUIRE(run.rule.hangs(run.now));
  CHECK(awaited_ranks(run.rule, run.now, {}, {}).empty());
  CHECK(hang_outcome(run.rule, run.now, {}).end.message.find("all wait for each other") != std::string::npos);
  CHECK(awaited_ranks(run.rule, run.now, {1}, {}) == std::vector<int>{1});
  --run.view(2).step;
  run.pass(1, false);
  CHECK(awaited_ranks(run.rule, run.now, {}, {}) == std::vector<int>{2});
}

TEST_CASE(
    "the report names step, collective, rank, host and activity, lists all ranks, and shows where the rank stands") {
  Training run(8, 0.1);
  run.pass(20, true);
  for (int rank = 0; rank < 8; ++rank) run.wait_for_others(rank);
  run.view(5) = {.rank = 5,
                 .process = 4711,
                 .training = Activity::waiting_for_data,
                 .activity = Activity::reading_data,
                 .text = "img_0412.jpg",
                 .step = 812};
  for (int rank = 0; rank < 8; ++rank) run.view(rank).step = 812;
  run.pass(1, false);
  for (int rank = 0; rank < 8; ++rank) run.view(rank).seconds = 13.9;
  run.pass(13, false);
  REQUIRE(run.rule.hangs(run.now));
  HangEvidence evidence;
  evidence.places[5] = {.exists = true};
  evidence.places[5].threads = {{.name = "loader",
                                 .state = 'S',
                                 .system_call = "read of /data/img_0412.jpg",
                                 .kernel_function = "pipe_read",
                                 .functions = {"read", "InputFile::read_some"}}};
  const Outcome outcome = hang_outcome(run.rule, run.now, evidence);
  const std::string& text = outcome.end.message;
  INFO(text);
  CHECK(outcome.kind == OutcomeKind::rank_hung);
  CHECK(outcome.end.exit_code == 5);
  CHECK(outcome.rank == 5);
  CHECK(outcome.host == "h5");
  CHECK(outcome.step == 812);
  CHECK(
      text.starts_with("step 812, all_reduce of bucket 3 (conv5 ... fc1): waiting for rank 5 on h5: reading "
                       "img_0412.jpg for 14 s\n"));
  for (int rank = 0; rank < 8; ++rank) CHECK(text.find(format("h{} ", rank)) != std::string::npos);
  CHECK(text.find("the threads of rank 5 (process 4711 on h5):\n"
                  "  thread loader: waits (state S), in the system call read of /data/img_0412.jpg (wchan pipe_read)\n"
                  "    read < InputFile::read_some\n"
                  "if the data may take longer than 10 s, set a longer time by cluster.hang_timeout") !=
        std::string::npos);
}

TEST_CASE("the report on ranks that have begun no step names no step") {
  Training run(2, 0.1);
  run.pass(20, true);
  for (int rank = 0; rank < 2; ++rank) run.view(rank).step = -1;
  run.wait_for_others(0);
  run.view(1).training = run.view(1).activity = Activity::waiting_for_data;
  run.pass(12, false);
  const Outcome outcome = hang_outcome(run.rule, run.now, {});
  INFO(outcome.end.message);
  CHECK(
      outcome.end.message.starts_with("no step has begun since the start, all_reduce of bucket 3 (conv5 ... fc1): "
                                      "waiting for rank 1 on h1: waiting for data for "));
  CHECK(outcome.rank == 1);
  CHECK_FALSE(outcome.step);
}

TEST_CASE("a lease ends without messages, but not during a pause of the whole process") {
  using std::chrono::seconds;
  Lease::Clock::time_point now{};
  Lease lease(seconds(30), now), without(seconds(0), now);
  for (int i = 0; i < 30; ++i) CHECK_FALSE(lease.is_over(now += seconds(1)));
  lease.renew(now);
  for (int i = 0; i < 30; ++i) CHECK_FALSE(lease.is_over(now += seconds(1)));
  CHECK(lease.is_over(now + seconds(1)));
  Lease paused(seconds(30), now);
  CHECK_FALSE(paused.is_over(now + seconds(1)));
  CHECK_FALSE(paused.is_over(now + seconds(3600)));
  CHECK_FALSE(without.is_over(now + seconds(2)));
  Lease suspended(seconds(30), now);
  suspended.pause();
  for (int i = 0; i < 100; ++i) CHECK_FALSE(suspended.is_over(now += seconds(1)));
  suspended.renew(now);
  for (int i = 0; i < 31; ++i) suspended.is_over(now += seconds(1));
  CHECK(suspended.is_over(now));
}

}  // namespace
}  // namespace trainctl::hang_rule_test
