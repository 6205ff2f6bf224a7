// Learning-rate schedules against closed forms.
#include "core/optim/schedule.h"

#include <cmath>

#include "core/optim/constant_schedule.h"
#include "core/optim/cosine_schedule.h"
#include "core/optim/step_schedule.h"
#include "test/catch.h"

using namespace trainctl;

namespace {
ScheduleTime at(std::int64_t step) { return {step, 10, 100}; }
}  // namespace

TEST_CASE("constant stays, after a linear warm-up") {
  ConstantSchedule schedule;
  CHECK(schedule.learning_rate(0.3, at(0)) == 0.3);
  schedule.warmup = Duration::epochs(0.5);
  const double expected[] = {0.06, 0.12, 0.18, 0.24, 0.3, 0.3};
  for (int step = 0; step < 6; ++step) CHECK(schedule.learning_rate(0.3, at(step)) == Approx(expected[step]));
}

TEST_CASE("step falls at intervals, or at boundaries") {
  StepSchedule schedule;
  schedule.every = Duration::epochs(3);
  schedule.factor = 0.5;
  CHECK(schedule.learning_rate(1, at(29)) == 1);
  CHECK(schedule.learning_rate(1, at(30)) == 0.5);
  CHECK(schedule.learning_rate(1, at(99)) == 0.125);
  schedule.every.reset();
  schedule.boundaries = {Duration::steps(7), Duration::epochs(5)};
  CHECK(schedule.learning_rate(1, at(6)) == 1);
  CHECK(schedule.learning_rate(1, at(7)) == 0.5);
  CHECK(schedule.learning_rate(1, at(49)) == 0.5);
  CHECK(schedule.learning_rate(1, at(50)) == 0.25);
}

TEST_CASE("cosine falls from the end of warm-up to the minimum at the end of the run") {
  CosineSchedule schedule;
  schedule.warmup = Duration::epochs(2);
  schedule.minimum = 0.01;
  CHECK(schedule.learning_rate(0.1, at(9)) == Approx(0.05));
  CHECK(schedule.learning_rate(0.1, at(19)) == Approx(0.1));
  CHECK(schedule.learning_rate(0.1, at(20)) == Approx(0.1));
  CHECK(schedule.learning_rate(0.1, at(60)) == Approx(0.055));  // half-way
  CHECK(schedule.learning_rate(0.1, at(80)) == Approx(0.01 + 0.09 * 0.5 * (1 - std::sqrt(0.5))));
  CHECK(schedule.learning_rate(0.1, at(100)) == Approx(0.01));
  CHECK_THROWS_AS(schedule.learning_rate(0.1, {5, 10, 0}), Error);
}

TEST_CASE("schedules refuse times and contradictions") {
  const auto errors = [](const char* name, const std::vector<std::pair<std::string, Node>>& entries) {
    Node node = map_node();
    append(node, "name", scalar_node(name));
    for (const auto& [key, value] : entries) append(node, key, value);
    Reader reader;
    Choice choice;
    read_choice(schedule_choices(), node, reader, choice);
    return reader.diagnostics().size();
  };
  CHECK(errors("cosine", {{"warmup", scalar_node("1 epoch")}}) == 0);
  CHECK(errors("cosine", {{"warmup", scalar_node("30 s")}}) == 1);
  CHECK(errors("step", {}) == 1);
  CHECK(errors("step", {{"every", scalar_node("30 epochs")}}) == 0);
  CHECK(errors("step", {{"every", scalar_node("0 epochs")}}) == 1);
  Node list = sequence_node();
  list.items.push_back(scalar_node("80 epochs"));
  CHECK(errors("step", {{"boundaries", list}}) == 0);
  CHECK(errors("step", {{"boundaries", list}, {"every", scalar_node("5 steps")}}) == 1);
}
