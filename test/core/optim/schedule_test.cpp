// Compares learning-rate schedules with closed forms.
#include "core/optim/schedule.h"
#include "core/optim/choices.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "test/catch.h"

namespace trainctl::schedule_test {
namespace {

ScheduleTime at(std::int64_t step) { return {step, 10, 100}; }

using Entries = std::vector<std::pair<std::string, Node>>;

Choice read(const char* name, const Entries& entries, Reader& reader) {
  Node node = map_node();
  append(node, "name", scalar_node(name));
  for (const auto& [key, value] : entries) append(node, key, value);
  Choice choice;
  read_choice(schedule_choices(), node, reader, choice);
  return choice;
}

// A schedule of a config, as a function of the base rate and the time.
class Schedule {
 public:
  Schedule(const char* name, const Entries& entries) {
    Reader reader;
    choice_ = read(name, entries, reader);
    REQUIRE(reader.ok());
  }
  double learning_rate(double base, const ScheduleTime& time) const {
    return choice_.as<ScheduleOptions>().learning_rate(base, time);
  }

 private:
  Choice choice_;
};

// Returns the errors of a schedule of a config, one per line.
std::string errors_of(const char* name, const Entries& entries) {
  Reader reader;
  read(name, entries, reader);
  std::string text;
  for (const Diagnostic& diagnostic : reader.diagnostics()) text += (text.empty() ? "" : "\n") + diagnostic.message;
  return text;
}

Node list_of(const std::vector<const char*>& texts) {
  Node list = sequence_node();
  for (const char* text : texts) list.items.push_back(scalar_node(text));
  return list;
}

}  // namespace

TEST_CASE("constant keeps the base rate after a linear warm-up") {
  CHECK(Schedule("constant", {}).learning_rate(0.3, at(0)) == 0.3);
  const Schedule schedule("constant", {{"warmup", scalar_node("0.5 epochs")}});
  const double expected[] = {0.06, 0.12, 0.18, 0.24, 0.3, 0.3};
  for (int step = 0; step < 6; ++step) CHECK(schedule.learning_rate(0.3, at(step)) == Approx(expected[step]));
}

TEST_CASE("step falls at intervals, or at boundaries") {
  const Node half = scalar_node("0.5");
  const Schedule regular("step", {{"every", scalar_node("3 epochs")}, {"factor", half}});
  CHECK(regular.learning_rate(1, at(29)) == 1);
  CHECK(regular.learning_rate(1, at(30)) == 0.5);
  CHECK(regular.learning_rate(1, at(99)) == 0.125);
  const Schedule listed("step", {{"boundaries", list_of({"7 steps", "5 epochs"})}, {"factor", half}});
  CHECK(listed.learning_rate(1, at(6)) == 1);
  CHECK(listed.learning_rate(1, at(7)) == 0.5);
  CHECK(listed.learning_rate(1, at(49)) == 0.5);
  CHECK(listed.learning_rate(1, at(50)) == 0.25);
}

TEST_CASE("cosine falls from the end of warm-up to the minimum at the end of the run") {
  const Schedule schedule("cosine", {{"warmup", scalar_node("2 epochs")}, {"minimum", scalar_node("0.01")}});
  CHECK(schedule.learning_rate(0.1, at(9)) == Approx(0.05));
  CHECK(schedule.learning_rate(0.1, at(19)) == Approx(0.1));
  CHECK(schedule.learning_rate(0.1, at(20)) == Approx(0.1));
  CHECK(schedule.learning_rate(0.1, at(60)) == Approx(0.055));  // half-way
  CHECK(schedule.learning_rate(0.1, at(80)) == Approx(0.01 + 0.09 * 0.5 * (1 - std::sqrt(0.5))));
  CHECK(schedule.learning_rate(0.1, at(100)) == Approx(0.01));
  CHECK_THROWS_AS(schedule.learning_rate(0.1, {5, 10, 0}), Error);
}

TEST_CASE("piecewise has the given values between boundaries") {
  const Schedule schedule(
      "piecewise", {{"boundaries", list_of({"7 steps", "5 epochs"})}, {"values", list_of({"0.5", "2", "0.125"})}});
  CHECK(schedule.learning_rate(99, at(0)) == 0.5);
  CHECK(schedule.learning_rate(99, at(6)) == 0.5);
  CHECK(schedule.learning_rate(99, at(7)) == 2);
  CHECK(schedule.learning_rate(99, at(49)) == 2);
  CHECK(schedule.learning_rate(99, at(50)) == 0.125);
  CHECK(schedule.learning_rate(99, at(5000)) == 0.125);
}

TEST_CASE("exponential falls by a rate in each interval after warm-up") {
  const Entries entries{{"decay_steps", scalar_node("2 epochs")}, {"decay_rate", scalar_node("0.25")}};
  const Schedule smooth("exponential", entries);
  CHECK(smooth.learning_rate(3, at(0)) == 3);
  CHECK(smooth.learning_rate(3, at(10)) == Approx(1.5));
  CHECK(smooth.learning_rate(3, at(20)) == Approx(0.75));
  CHECK(smooth.learning_rate(3, at(50)) == Approx(3.0 / 32));
  Entries stairs = entries;
  stairs.emplace_back("staircase", scalar_node("true"));
  stairs.emplace_back("warmup", scalar_node("4 steps"));
  const Schedule staircase("exponential", stairs);
  CHECK(staircase.learning_rate(3, at(1)) == Approx(1.5));
  CHECK(staircase.learning_rate(3, at(23)) == 3);
  CHECK(staircase.learning_rate(3, at(24)) == Approx(0.75));
  CHECK(staircase.learning_rate(3, at(43)) == Approx(0.75));
}

TEST_CASE("polynomial falls to the minimum, once or again and again") {
  const Schedule line("polynomial", {{"warmup", scalar_node("2 epochs")}, {"minimum", scalar_node("0.5")}});
  CHECK(line.learning_rate(4.5, at(9)) == Approx(2.25));
  CHECK(line.learning_rate(4.5, at(20)) == 4.5);
  CHECK(line.learning_rate(4.5, at(40)) == Approx(3.5));
  CHECK(line.learning_rate(4.5, at(100)) == 0.5);
  CHECK_THROWS_AS(line.learning_rate(4.5, {5, 10, 0}), Error);
  const Entries entries{{"decay_steps", scalar_node("8")}, {"power", scalar_node("2")}};
  const Schedule square("polynomial", entries);
  CHECK(square.learning_rate(1, {2, 10, 0}) == Approx(0.5625));
  CHECK(square.learning_rate(1, {8, 10, 0}) == 0);
  CHECK(square.learning_rate(1, {11, 10, 0}) == 0);
  Entries again = entries;
  again.emplace_back("cycle", scalar_node("true"));
  const Schedule cycle("polynomial", again);
  CHECK(cycle.learning_rate(1, at(0)) == 1);
  CHECK(cycle.learning_rate(1, at(2)) == Approx(0.5625));
  CHECK(cycle.learning_rate(1, at(8)) == 0);
  CHECK(cycle.learning_rate(1, at(12)) == Approx(0.0625));  // 4 of 16 steps are left
  CHECK(cycle.learning_rate(1, at(18)) == Approx(0.0625));  // 6 of 24
}

TEST_CASE("inverse_sqrt is the Transformer's schedule") {
  // d^-0.5 min(t^-0.5, t W^-1.5) in step t = 1, 2, ... with d = 512 and W = 40: the base is the value at t = W.
  const double base = 1 / std::sqrt(512.0 * 40);
  const Schedule schedule("inverse_sqrt", {{"warmup", scalar_node("4 epochs")}});
  for (const double t : {1.0, 7.0, 39.0, 40.0, 41.0, 90.0, 4000.0}) {
    const double expected = std::min(1 / std::sqrt(t), t * std::pow(40, -1.5)) / std::sqrt(512);
    CHECK(schedule.learning_rate(base, at(static_cast<std::int64_t>(t) - 1)) == Approx(expected));
  }
  CHECK(Schedule("inverse_sqrt", {}).learning_rate(1, at(3)) == 0.5);
}

TEST_CASE("one_cycle equals PyTorch's schedule") {
  // Values of torch.optim.lr_scheduler.OneCycleLR(max_lr=0.5, total_steps=100).
  const std::pair<int, double> cosine[] = {{0, 0.02},  {1, 0.02140689028}, {10, 0.1475819742}, {28, 0.4985931097},
                                           {29, 0.5},  {30, 0.4997482676}, {60, 0.2946400451}, {98, 0.0002537323577},
                                           {99, 2e-06}};
  const Schedule standard("one_cycle", {});
  for (const auto& [step, expected] : cosine) {
    CAPTURE(step);
    CHECK(standard.learning_rate(0.5, at(step)) == Approx(expected));
  }
  // With total_steps=13, pct_start=0.25, div_factor=5, final_div_factor=20, anneal_strategy="linear".
  const double linear[] = {0.1,          0.2777777778,  0.4555555556, 0.4619230769, 0.4111538462,
                           0.3603846154, 0.3096153846,  0.2588461538, 0.2080769231, 0.1573076923,
                           0.1065384615, 0.05576923077, 0.005};
  const Schedule other("one_cycle", {{"pct_start", scalar_node("0.25")},
                                     {"div_factor", scalar_node("5")},
                                     {"final_div_factor", scalar_node("20")},
                                     {"anneal_strategy", scalar_node("linear")}});
  for (int step = 0; step < 13; ++step) {
    CAPTURE(step);
    CHECK(other.learning_rate(0.5, {step, 5, 13}) == Approx(linear[step]));
  }
  for (const char* share : {"0", "0.01", "1"}) {  // no rise, a rise that ends in the first step, no fall
    const Schedule edge("one_cycle", {{"pct_start", scalar_node(share)}});
    for (const int step : {0, 50, 99}) CHECK(std::isfinite(edge.learning_rate(0.5, at(step))));
    CHECK(std::isfinite(edge.learning_rate(0.5, {0, 1, 1})));
  }
  CHECK_THROWS_AS(standard.learning_rate(0.1, {5, 10, 0}), Error);
}

TEST_CASE("only schedules that end with the run need its length") {
  const auto needs = [](const char* name, const Entries& entries) {
    Reader reader;
    return read(name, entries, reader).as<ScheduleOptions>().needs_length();
  };
  CHECK(needs("cosine", {}));
  CHECK(needs("one_cycle", {}));
  CHECK(needs("polynomial", {}));
  CHECK_FALSE(needs("polynomial", {{"decay_steps", scalar_node("9 epochs")}}));
  CHECK_FALSE(needs("inverse_sqrt", {}));
}

TEST_CASE("schedules refuse durations and contradictory options") {
  const auto errors = [](const char* name, const Entries& entries) {
    Reader reader;
    read(name, entries, reader);
    return reader.diagnostics().size();
  };
  CHECK(errors("cosine", {{"warmup", scalar_node("1 epoch")}}) == 0);
  CHECK(errors("cosine", {{"warmup", scalar_node("30 s")}}) == 1);
  CHECK(errors("step", {}) == 1);
  CHECK(errors("step", {{"every", scalar_node("30 epochs")}}) == 0);
  CHECK(errors("step", {{"every", scalar_node("0 epochs")}}) == 1);
  const Node list = list_of({"80 epochs"});
  CHECK(errors("step", {{"boundaries", list}}) == 0);
  CHECK(errors("step", {{"boundaries", list}, {"every", scalar_node("5 steps")}}) == 1);
}

TEST_CASE("each wrong option of a schedule leads to one error") {
  const Node two = list_of({"0.5", "0.25"}), three = list_of({"0.5", "0.25", "0.125"});
  const Node steps = list_of({"3 steps", "5 epochs"});
  CHECK(errors_of("piecewise", {{"boundaries", steps}, {"values", three}}).empty());
  CHECK(errors_of("piecewise", {{"boundaries", steps}, {"values", two}}) ==
        "there must be one value more than boundaries: 3 values, not 2");
  CHECK(errors_of("piecewise", {{"boundaries", list_of({"5 epochs", "7 steps", "5 epochs"})},
                                {"values", list_of({"4", "3", "2", "1"})}}) == "boundaries must ascend");
  CHECK(errors_of("piecewise", {{"boundaries", list_of({"5 s"})}, {"values", two}}) ==
        "boundaries must be a number of steps or epochs, not '5 s'");
  CHECK(errors_of("piecewise", {{"boundaries", list_of({"5"})}, {"values", list_of({"1", "-1"})}}) ==
        "values must be at least 0, not -1");
  const auto exponential = [](const char* interval, const char* rate) {
    return errors_of("exponential", {{"decay_steps", scalar_node(interval)}, {"decay_rate", scalar_node(rate)}});
  };
  CHECK(exponential("1 epoch", "0.5").empty());
  CHECK(exponential("0 epochs", "0.5") == "decay_steps must be more than 0, not 0 epochs");
  CHECK(exponential("1 min", "0.5") == "decay_steps must be a number of steps or epochs, not '60 s'");
  CHECK(exponential("1", "0") == "decay_rate must be more than 0, not 0");
  CHECK(errors_of("polynomial", {{"cycle", scalar_node("true")}}) ==
        "cycle needs decay_steps, the length of the first fall");
  CHECK(errors_of("one_cycle", {{"pct_start", scalar_node("1.5")}}) ==
        "pct_start must be at least 0 and at most 1, not 1.5");
  CHECK(errors_of("one_cycle", {{"warmup", scalar_node("1 epoch")}}) == "unknown key 'warmup' in one_cycle");
}

}  // namespace trainctl::schedule_test
