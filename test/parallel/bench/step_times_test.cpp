// Tests the figures that `bench step` computes from the times of single steps.
#include "parallel/bench/step.h"

#include "test/catch.h"

namespace trainctl::step_times_test {
namespace {

StepTime step(double seconds, double waited = 0) { return {seconds, 64, waited, {0.25, 0.5, 0, 0.125, 0.125}}; }

}  // namespace

TEST_CASE("bench step counts the waits between bursts of prefetched batches") {
  // Of every ten steps nine find their batch ready, and one waits.
  std::vector<StepTime> steps;
  for (int i = 0; i < 100; ++i) steps.push_back(step(i % 10 == 9 ? 11 : 1, i % 10 == 9 ? 10 : 0));
  const StepFigures figures = figures_of(steps);
  CHECK(figures.median == Approx(1));
  CHECK(figures.mean == Approx(2));
  CHECK(figures.samples_per_second == Approx(32));
  CHECK(figures.idle == Approx(1));
  CHECK(figures.data == Approx(0.125 + 1));
  CHECK(figures.other == Approx(0).margin(1e-12));
}

TEST_CASE("bench step's rate ignores one stalled window") {
  std::vector<StepTime> steps(50, step(2));
  steps[17].seconds = 1000;
  CHECK(figures_of(steps).samples_per_second == Approx(32));
}

TEST_CASE("bench step does not count waiting during which the device works") {
  const StepFigures figures = figures_of({step(1.5, 1.25), step(1.5, 1.25)});  // the device works for 1 of 1.5 s
  CHECK(figures.idle == Approx(0.5));
  CHECK(figures.waited == Approx(1.25));
  CHECK(figures.data == Approx(0.125 + 0.5));
  const Engine::Phases& phases = figures.phases;
  CHECK(phases.forward + phases.backward + phases.communication + phases.update + figures.data + figures.other ==
        Approx(figures.mean));
}

TEST_CASE("bench step counts the short batch at an epoch's end in the rate only") {
  std::vector<StepTime> steps;
  for (int i = 0; i < 20; ++i) steps.push_back(step(1));
  for (std::size_t i = 1; i < steps.size(); i += 2) steps[i] = {0.5, 32, 0, {}};
  const StepFigures figures = figures_of(steps);
  CHECK(figures.samples_per_second == Approx(64));
  CHECK(figures.mean == Approx(1));
  CHECK(figures.phases.backward == Approx(0.5));
  CHECK(figures_of({step(1)}).samples_per_second == Approx(64));
}

}  // namespace trainctl::step_times_test
