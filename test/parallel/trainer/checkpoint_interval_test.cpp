// Tests how often checkpoints are due: the formula against the minimum of the expected time, and the agreement of
// ranks.
#include "parallel/trainer/loop/checkpoint_interval.h"

#include <cmath>
#include <random>

#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "core/base/table.h"
#include "parallel/trainer/hooks/hook.h"
#include "test/catch.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::test::checkpoint_interval_test {
namespace {

constexpr std::int64_t never = TrainingHook::never;

// The expected time of a run with failures at random moments, per second of training without saves, if it is saved
// after every `interval` seconds. A failure loses the work since the last save.
double expected_time(double interval, double cost, double failures) {
  return failures * std::expm1((interval + cost) / failures) / interval;
}

// Finds the interval with the least expected time by golden section.
double best_by_search(double cost, double failures) {
  double low = std::log(cost * 1e-3), high = std::log(failures * 10);
  const double golden = (std::sqrt(5.0) - 1) / 2;
  const auto time = [&](double exponent) { return expected_time(std::exp(exponent), cost, failures); };
  for (int i = 0; i < 200; ++i) {
    const double left = high - golden * (high - low), right = low + golden * (high - low);
    (time(left) < time(right) ? high : low) = time(left) < time(right) ? right : left;
  }
  return std::exp((low + high) / 2);
}

void check(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorKind::internal, what);
}

}  // namespace

TEST_CASE("the interval of saves has the least expected time") {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> exponent(-7, -0.5);
  for (int i = 0; i < 200; ++i) {
    const double failures = std::pow(10, 1 - exponent(random)), cost = failures * std::pow(10, exponent(random));
    CAPTURE(cost, failures);
    const double found = best_save_interval(cost, failures), best = best_by_search(cost, failures);
    CHECK(found == Approx(best).epsilon(0.02));
    CHECK(expected_time(found, cost, failures) < 1.0005 * expected_time(best, cost, failures));
  }
  CHECK(best_save_interval(1, 1e8) == Approx(std::sqrt(2e8)).epsilon(1e-3));  // Young's first order
  CHECK(best_save_interval(30, 10) == 10);
  CHECK(best_save_interval(0, 100) == 0);
}

TEST_CASE("a fixed interval is due at its multiples") {
  const CheckpointInterval four(4), none(0);
  CHECK(four.next(0) == 4);
  CHECK(four.next(4) == 8);
  CHECK(four.is_due(3, 4));
  CHECK(four.is_due(3, 9));
  CHECK_FALSE(four.is_due(4, 7));
  CHECK(none.next(5) == never);
  CHECK_FALSE(none.is_due(0, 1000));
}

TEST_CASE("ranks agree on a computed interval by the largest cost, and tell it when it changes by a factor of two") {
  const double failures = 1e6;
  const auto errors = on_threads(3, [&](Communicator& world) {
    ImmediateStream stream;
    const double mine = world.rank() + 1;  // the rank's cost and step time are up to three times those of rank 0
    CheckpointInterval interval(0, failures);
    interval.begin(20, 100);
    check(interval.next(20) == 30 && interval.is_due(29, 30) && !interval.is_due(20, 29), "the first save");
    // Steps take 0.1, 0.2 and 0.3 s, and a save stops training for 1, 2 and 3 s.
    std::string line = interval.note_save(30, 100 + mine, {mine, 0}, world, stream);
    const auto steps = static_cast<std::int64_t>(std::round(best_save_interval(3, failures) / 0.3));
    check(interval.next(30) == 30 + steps, "the interval of the largest cost and the slowest step");
    check(line.find("every " + counted(steps, "step") + ", about") != std::string::npos, "it is told: " + line);
    // Half the cost: the interval changes by less than a factor of 2.
    double now = 100 + mine;
    std::int64_t step = 30;
    const auto save_again = [&](SaveCost cost, double step_seconds) {
      step += 100;
      now += 100 * step_seconds;
      return interval.note_save(step, now, cost, world, stream);
    };
    check(save_again({1.5, 0}, 0.3) == "", "no large change");
    check(interval.next(step) < step + steps, "the new interval counts");
    check(save_again({0.3, 0}, 0.3) != "", "a third of the time is told");
    // Slow writing, and fast steps, do not lead to saves one after the other.
    save_again({0, 40 * mine}, 0.3);
    check(interval.next(step) == step + 800, "twice the time of writing, 120 s");
    // A checkpoint that is still being written when the next one is due puts it off, by twice the time so far.
    save_again({0, 1}, 0.1);
    check(interval.next(step) == step + 100, "twice the time of writing as known, but at least 10 s");
    check(!interval.puts_off(step + 100, now + 10, {0, 1}, world, stream), "nothing is known that changes it");
    check(interval.puts_off(step + 100, now + 10, {0, 4.0 * mine}, world, stream), "12 s on the slowest rank");
    check(interval.next(step + 100) == step + 240, "24 s after the last save");
    check(!interval.is_due(step + 99, step + 100) && interval.is_due(step + 239, step + 240), "the later step counts");
    check(interval.puts_off(step + 240, now + 24, {0, 24}, world, stream), "it is still being written");
    check(interval.next(step + 240) == step + 480, "48 s after the last save");
    check(!interval.puts_off(step + 480, now + 48, {0, 8.0 * mine}, world, stream), "it has taken 24 s");
    check(!CheckpointInterval(4).puts_off(4, now, {0, 100}, world, stream), "a fixed interval stays");
    save_again({0, 0}, 0.001);
    check(interval.next(step) == step + 10000, "at least 10 s");
    save_again({0, 0}, 600);
    check(interval.next(step) == step + 1, "at least a step");
  });
  for (const std::string& error : errors) CHECK(error == "");
}

}  // namespace trainctl::test::checkpoint_interval_test
