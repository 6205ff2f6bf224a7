// Learning-rate schedules against closed forms.
#include "core/optim/schedule.h"

#include <cmath>

#include "test/catch.h"

using namespace trainctl;

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

// A schedule of a config, as a function of the base and the time.
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

Node list_of(const std::vector<const char*>& texts) {
  Node list = sequence_node();
  for (const char* text : texts) list.items.push_back(scalar_node(text));
  return list;
}

}  // namespace

TEST_CASE("constant stays, after a linear warm-up") {
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

TEST_CASE("schedules refuse times and contradictions") {
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
