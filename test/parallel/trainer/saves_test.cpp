// Tests the training loop while a thread saves, and with checkpoints that cannot be written.
#include <algorithm>
#include <chrono>
#include <thread>

#include "test/parallel/comm/on_threads.h"
#include "test/parallel/trainer/loop_rig.h"

namespace trainctl::test::loop_test {
namespace {

// Waits at most ten seconds for the condition; returns whether it became true.
bool becomes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace

TEST_CASE("training continues while a thread saves, and a step counts as saved once its checkpoint is complete") {
  on_one_rank([](Communicator& world) {
    Rig rig(world, 1, true);
    bool went_on = false;
    rig.store.before_write = [&](std::int64_t step) {
      if (step == 4) went_on = becomes_true([&] { return rig.engine.steps >= 7; });
    };
    std::vector<std::int64_t> saved;  // by step
    rig.hook.after_step = [&] { saved.push_back(rig.checkpoints.saved_step()); };
    const EndEvent end = rig.run();
    CHECK(went_on);
    CHECK(std::count(saved.begin(), saved.begin() + 6, -1) == 6);
    CHECK(end.status == "completed");
    CHECK(rig.checkpoints.saved_step() == 12);
    Log saves;
    for (const std::string& line : rig.log) {
      if (line.starts_with("save")) saves.push_back(line);
    }
    CHECK(saves == Log{"save 4", "save 8", "save 12"});
    CHECK(std::find(rig.log.begin(), rig.log.end(), "save 4") > std::find(rig.log.begin(), rig.log.end(), "step 6"));
    CHECK(rig.store.values == std::vector<float>{5, 9, 13});  // the value of each checkpoint's own step
  });
}

TEST_CASE("a run that is stopped during a save ends after this save and its last one are complete") {
  on_one_rank([](Communicator& world) {
    Rig rig(world, 1, true);
    rig.store.before_write = [&](std::int64_t step) {
      if (step == 4) becomes_true([&] { return rig.engine.steps >= 6; });
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    };
    rig.stop_requested = [&rig] { return rig.engine.rates.size() >= 5; };
    const EndEvent end = rig.run();
    CHECK(end.status == "stopped");
    CHECK(rig.log.back() == format("save {}", end.step));
    CHECK(rig.store.last.step == end.step);
    REQUIRE(rig.told.size() >= 2);
    CHECK(rig.told.front());
    CHECK_FALSE(rig.told.back());
  });
}

Log saves_of(const Log& log) {
  Log saves;
  for (const std::string& line : log) {
    if (line.starts_with("save")) saves.push_back(line);
  }
  return saves;
}

// Runs three ranks that cannot write the checkpoints of these steps. Returns the ranks' errors, without the step.
std::vector<std::string> run_with_failures(const std::vector<std::int64_t>& failing, bool background, Log& saves) {
  return on_threads(3, [&](Communicator& world) {
    Rig rig(world, 1, background);
    rig.store.before_write = [&](std::int64_t step) {
      const bool fails = world.rank() == 0 && std::count(failing.begin(), failing.end(), step) > 0;
      if (fails) throw Error(ErrorKind::resource, SourceLocation{format("{}", step)}, "cannot write: disk full");
    };
    try {
      const EndEvent end = rig.run();
      require(end.step == 12 && end.status == "completed", "the run is complete");
    } catch (const CollectiveError& error) {
      require(error.kind() == ErrorKind::resource, "it is a lack of resources");
      require(std::count(rig.log.begin(), rig.log.end(), "step 12") == 1, "all steps are done");
      if (world.rank() == 0) saves = saves_of(rig.log);
      throw;
    }
    if (world.rank() == 0) saves = saves_of(rig.log);
  });
}

TEST_CASE("a checkpoint that cannot be written is left out, and training goes on to its end") {
  const bool background = GENERATE(false, true);
  Log saves;
  CHECK(run_with_failures({4}, background, saves) == std::vector<std::string>(3));
  CHECK(saves == Log{"save 8", "save 12"});
  CHECK(run_with_failures({4, 8}, background, saves) == std::vector<std::string>(3));
  CHECK(saves == Log{"save 12"});
}

TEST_CASE("a run whose last state cannot be saved ends with an error that names the newest whole checkpoint") {
  const bool background = GENERATE(false, true);
  Log saves;
  const std::string what =
      "12: the run has ended after step 12, and its last state could not be saved: cannot write: disk full; ";
  for (const std::string& error :
       {run_with_failures({12}, background, saves).front(), run_with_failures({4, 12}, background, saves).front()}) {
    CHECK(error == what + "the newest whole checkpoint is saved 8; the same command goes on from there");
  }
  CHECK(saves == Log{"save 8"});
  const std::vector<std::string> errors = run_with_failures({4, 8, 12}, background, saves);
  CHECK(errors == std::vector<std::string>(3, what + "the run has no whole checkpoint"));
  CHECK(saves.empty());
}

TEST_CASE("with a computed interval, the first save is after ten steps and further ones follow the measured cost") {
  on_one_rank([](Communicator& world) {
    Rig rig(world, 1, true);
    rig.plan.checkpoint_every = 0;
    rig.plan.time_between_failures = 1e6;
    rig.plan.total_steps = 400;
    rig.run();
    CHECK(saves_of(rig.log) == Log{"save 10", "save 400"});
  });
}

TEST_CASE("a run that diverges during a save names the checkpoint of this save") {
  on_one_rank([](Communicator& world) {
    Rig rig(world, 1, true);
    rig.engine.nan_step = 5;
    rig.store.before_write = [&](std::int64_t) { becomes_true([&] { return rig.engine.steps >= 6; }); };
    try {
      rig.run();
      FAIL("the run did not end");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("the last checkpoint is of step 4") != std::string::npos);
    }
  });
}

}  // namespace trainctl::test::loop_test
