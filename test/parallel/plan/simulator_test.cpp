// Compares simulated steps with closed formulas and with a plain computation.
#include "parallel/plan/simulator.h"

#include <algorithm>
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/parallel/plan/hand_written_step.h"

namespace trainctl::simulator_test {
namespace {

// Every communication takes this latency and transfer time, with this share of the link.
GivenCosts with_traffic(double latency, double transfer, double share = 1) {
  GivenCosts costs;
  costs.traffic = [=](const Traffic&) { return TrafficSeconds{latency, transfer, share}; };
  return costs;
}

}  // namespace

TEST_CASE("a rank waits for a synchronous reduction between its computations") {
  const HandWrittenStep step = HandWrittenStep().compute(2).reduce("a", false).compute(3);
  const SimulatedStep result = simulate({.data = 4}, {step}, with_traffic(0.25, 0.5));
  CHECK(result.seconds == Approx(5.75));
  CHECK(result.phases().compute == Approx(5));
  CHECK(result.phases().communication == Approx(0.75));
  CHECK(result.phases().bubble == 0);
  CHECK(result.bytes_sent[0] == Approx(2 * 3.0 / 4 * 400));
}

TEST_CASE("an asynchronous reduction overlaps with the computation before its wait, and with nothing else") {
  const double overlapped = GENERATE(0.0, 0.5, 2.0, 7.0);
  const HandWrittenStep step = HandWrittenStep().compute(1).reduce("a", true).compute(overlapped).wait("a").compute(1);
  const SimulatedStep result = simulate({.data = 4}, {step}, with_traffic(0.5, 1.5));
  CHECK(result.seconds == Approx(2 + std::max(overlapped, 2.0)));
  CHECK(result.phases().communication == Approx(std::max(2.0 - overlapped, 0.0)).margin(1e-12));
}

// Asynchronous reductions run one after the other on their own stream; the test computes the time of random steps a
// second time, op by op.
TEST_CASE("random steps with buckets take as long as two streams, one of computation and one of reductions") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.01, 1);
  for (int trial = 0; trial < 50; ++trial) {
    HandWrittenStep step;
    const double each = seconds(random);
    double computed = 0, reduced = 0;
    std::vector<std::pair<std::string, double>> under_way;
    for (int i = 0; i < 30; ++i) {
      const int what = static_cast<int>(random() % 3);
      if (what == 0) {
        const double time = seconds(random);
        step.compute(time);
        computed += time;
      } else if (what == 1) {
        const std::string name = format("bucket {}", i);
        step.reduce(name, true);
        reduced = std::max(reduced, computed) + each;
        under_way.emplace_back(name, reduced);
      } else if (!under_way.empty()) {
        step.wait(under_way.front().first);
        computed = std::max(computed, under_way.front().second);
        under_way.erase(under_way.begin());
      }
    }
    for (const auto& [name, end] : under_way) {
      step.wait(name);
      computed = std::max(computed, end);
    }
    CHECK(simulate({.data = 2}, {step}, with_traffic(0.3 * each, 0.7 * each)).seconds == Approx(computed));
  }
}

TEST_CASE("a message begins when both of its stages have reached it") {
  const HandWrittenStep first = HandWrittenStep().compute(1).send("a", 1, false).compute(1);
  const HandWrittenStep second = HandWrittenStep().compute(4).receive("a", 0, false).compute(2);
  const SimulatedStep result = simulate({.pipeline = 2}, {first, second}, with_traffic(0.5, 0.5));
  CHECK(result.seconds == Approx(7));
  CHECK(result.stages[0].bubble == Approx(3 + 1));  // it waits for the second stage, and at the end of the step
  CHECK(result.stages[0].communication == Approx(1));
  CHECK(result.stages[1].bubble == 0);
  CHECK(result.bytes_sent == std::vector<double>{400, 0});
}

TEST_CASE("a collective of all stages waits for messages that are reached but have not begun") {
  const auto reduced = [](HandWrittenStep step) { return step.reduce("r", false, MeshAxis::pipeline); };
  const HandWrittenStep first = reduced(HandWrittenStep().send("a", 1, false));
  const HandWrittenStep second =
      reduced(HandWrittenStep().receive("a", 0, true).send("b", 2, true).wait("a").wait("b"));
  const HandWrittenStep third = reduced(HandWrittenStep().receive("b", 1, false));
  CHECK(simulate({.pipeline = 3}, {first, second, third}, with_traffic(0, 1)).seconds == Approx(3));
}

TEST_CASE("transfers share a link if together they need more than its bandwidth") {
  const HandWrittenStep step =
      HandWrittenStep().reduce("a", true, MeshAxis::data).reduce("b", true, MeshAxis::tensor).wait("a").wait("b");
  CHECK(simulate({.data = 2, .tensor = 2}, {step}, with_traffic(0, 1)).seconds == Approx(2));
  CHECK(simulate({.data = 2, .tensor = 2}, {step}, with_traffic(0, 1, 0.5)).seconds == Approx(1));
  CHECK(simulate({.data = 2, .tensor = 2}, {step}, with_traffic(0, 1, 0.75)).seconds == Approx(1.5));
  CHECK(simulate({.data = 2, .tensor = 2}, {step}, with_traffic(1, 0)).seconds ==
        Approx(1));  // latencies do not add up
}

TEST_CASE("messages in opposite directions do not share a link, those in one direction do") {
  // On nodes of two ranks: stages 0 and 1 send to 2 and 3 at once, out of one node and into another.
  const HandWrittenStep a = HandWrittenStep().send("a", 2, false), c = HandWrittenStep().receive("a", 0, false);
  const HandWrittenStep b = HandWrittenStep().send("b", 3, false), d = HandWrittenStep().receive("b", 1, false);
  CHECK(simulate({.pipeline = 4}, {a, b, c, d}, with_traffic(0, 1), 2).seconds == Approx(2));
  // One of them goes in the opposite direction.
  const HandWrittenStep e = HandWrittenStep().receive("b", 3, false), f = HandWrittenStep().send("b", 1, false);
  CHECK(simulate({.pipeline = 4}, {a, e, c, f}, with_traffic(0, 1), 2).seconds == Approx(1));
}

TEST_CASE("stages on one node share its network, stages on different nodes do not") {
  const HandWrittenStep step = HandWrittenStep().reduce("a", true, MeshAxis::data).wait("a");
  // Two replicas of two stages, on nodes of two ranks or of one rank.
  CHECK(simulate({.data = 2, .pipeline = 2}, {step, step}, with_traffic(0, 1), 2).seconds == Approx(2));
  CHECK(simulate({.data = 2, .pipeline = 2}, {step, step}, with_traffic(0, 1), 1).seconds == Approx(1));
  // On one node they use links of their own.
  CHECK(simulate({.data = 2, .pipeline = 2}, {step, step}, with_traffic(0, 1), 4).seconds == Approx(1));
}

TEST_CASE("communication that uses cores slows down the computation at the same time") {
  GivenCosts costs = with_traffic(0, 1);
  costs.takes_cores = true;
  const HandWrittenStep step = HandWrittenStep().reduce("a", true).compute(3).wait("a");
  const SimulatedStep result = simulate({.data = 2}, {step}, costs);
  CHECK(result.seconds == Approx(4));
  CHECK(result.phases().compute == Approx(3));
  CHECK(result.phases().communication == Approx(1));
}

TEST_CASE("the time of the host is added to the step") {
  const HandWrittenStep step = HandWrittenStep().compute(2);
  GivenCosts costs;
  costs.host = {.step = 0.5};
  CHECK(simulate({}, {step}, costs).seconds == Approx(2.5));
  CHECK(simulate({}, {step}, costs).phases().host == Approx(0.5));
}

TEST_CASE("stages that wait for each other for ever are an error") {
  const HandWrittenStep first = HandWrittenStep().send("a", 1, false).send("b", 1, false);
  const HandWrittenStep second = HandWrittenStep().receive("a", 0, false);
  CHECK_THROWS_AS(simulate({.pipeline = 2}, {first, second}), Error);
}

TEST_CASE("the timeline has every op and communication, without overlap in a stream, and ends with the step") {
  const HandWrittenStep step =
      HandWrittenStep().compute(1).compute(2).reduce("a", true).compute(1).reduce("b", true).wait("a").wait("b");
  const SimulatedStep result = simulate({.data = 4}, {step}, with_traffic(0.5, 1), 1024, true);
  REQUIRE(result.timeline.size() == 5);
  std::map<int, double> end_of_stream;
  double end = 0;
  for (const SimulatedEvent& event : result.timeline) {
    double& before = end_of_stream[event.axis ? 1 + static_cast<int>(*event.axis) : 0];
    CHECK(event.start >= before - 1e-12);
    CHECK(event.end > event.start);
    before = event.end;
    end = std::max(end, event.end);
  }
  CHECK(end == Approx(result.seconds));
}

}  // namespace trainctl::simulator_test
