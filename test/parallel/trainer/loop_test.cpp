// Tests the order of steps, hooks, evaluations and checkpoints in the training loop.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/base/flight_record.h"
#include "test/parallel/trainer/loop_rig.h"

namespace trainctl::test::loop_test {

TEST_CASE("the loop evaluates at the end of epochs and of the run, and saves when a checkpoint is due") {
  on_one_rank([](Communicator& world) {
    Rig rig(world);
    const EndEvent end = rig.run();
    CHECK(rig.log == Log{"start 0", "step 1",   "start 1", "step 2",   "start 2", "step 3",       "pause 3",
                         "start 3", "step 4",   "save 4",  "start 4",  "step 5",  "evaluation 5", "epoch 1",
                         "start 5", "step 6",   "pause 6", "start 6",  "step 7",  "start 7",      "step 8",
                         "save 8",  "start 8",  "step 9",  "pause 9",  "start 9", "step 10",      "evaluation 10",
                         "epoch 2", "start 10", "step 11", "start 11", "step 12", "pause 12",     "evaluation 12",
                         "end",     "save 12"});
    CHECK(end.status == "completed");
    CHECK(end.reason == "");
    CHECK(end.step == 12);
    CHECK(end.train.at("loss") == Approx((1.0 / 11 + 1.0 / 12) / 2));
    CHECK(rig.engine.rates[11] == 5.5);
    CHECK(rig.store.last.metadata.at("hook") == "kept");
  });
}

TEST_CASE("a step starts before the previous one is finished, except across a pause") {
  on_one_rank([](Communicator& world) {
    Rig rig(world, 2);
    rig.run();
    const Log first(rig.log.begin(), rig.log.begin() + 11);
    CHECK(first == Log{"start 0", "start 1", "step 1", "start 2", "step 2", "step 3", "pause 3", "start 3", "step 4",
                       "save 4", "start 4"});
  });
}

TEST_CASE("a checkpoint is saved at the best value, and a hook ends the run with a reason") {
  on_one_rank([](Communicator& world) {
    Rig rig(world);
    rig.plan.monitor = {"loss", false};
    rig.hook.last_epoch = 2;
    const EndEvent end = rig.run();
    CHECK(end.status == "completed");
    CHECK(end.reason == "enough");
    CHECK(end.step == 10);
    CHECK(end.best_step == 10);
    CHECK(end.best_value == Approx((1.0 / 6 + 1.0 / 7 + 1.0 / 8 + 1.0 / 9 + 1.0 / 10) / 5));
    CHECK(std::count(rig.log.begin(), rig.log.end(), "save 5") == 1);
    CHECK(Log(rig.log.end() - 4, rig.log.end()) == Log{"evaluation 10", "epoch 2", "end", "save 10"});
  });
}

TEST_CASE("a stopped run saves a checkpoint, and the resumed run ends with the values of an uninterrupted one") {
  on_one_rank([](Communicator& world) {
    Rig whole(world), first(world), second(world);
    first.stop_requested = [&first] { return first.engine.rates.size() >= 6; };
    const EndEvent stopped = first.run();
    CHECK(stopped.status == "stopped");
    CHECK(stopped.step == 7);
    CHECK(first.log.back() == "save 7");
    CHECK(first.store.last.position == DataPosition{1, 1, 8});
    const EndEvent end = second.run(&first.store.last), expected = whole.run();
    CHECK(second.hook.restored == "kept");
    CHECK(second.log.front() == "start 7");
    CHECK(end.status == "completed");
    CHECK(end.train == expected.train);
    CHECK(second.store.last.metadata == whole.store.last.metadata);
  });
}

TEST_CASE("the flight record of a resumed run names no step before the run has begun one") {
  on_one_rank([](Communicator& world) {
    Rig first(world), second(world);
    first.stop_requested = [&first] { return first.engine.rates.size() >= 6; };
    first.run();
    REQUIRE(first.store.last.step == 7);
    const std::string folder = (std::filesystem::temp_directory_path() / format("trainctl-loop-{}", getpid())).string();
    std::filesystem::create_directories(folder);
    {
      FlightRecord record(folder, 0, 1, "h0");
      world.attendance().set_flight(&record);
      std::vector<std::int64_t> steps;
      second.hook.before_training = [&] { steps.push_back(record.step()); };
      second.hook.after_step = [&] { steps.push_back(record.step()); };
      second.run(&first.store.last);
      world.attendance().set_flight(nullptr);
      CHECK(steps == std::vector<std::int64_t>{-1, 8, 9, 10, 11, 12});
    }
    std::filesystem::remove_all(folder);
  });
}

TEST_CASE("steps whose results a hook combines are reported once the results are combined") {
  class Pairs final : public TrainingHook {
   public:
    bool combine(std::int64_t step, StepResult& result) override {
      if (step % 2 == 1) {
        before_ = result;
        return false;
      }
      result.count += before_.count;
      for (std::size_t i = 0; i < result.sums.size(); ++i) result.sums[i] += before_.sums[i];
      return true;
    }
    void on_step_end(const TrainingState& state, double loss) override {
      const auto step = static_cast<double>(state.step);
      differences.push_back(loss - (1 / step + 1 / (step - 1)) / 2);
    }
    std::vector<double> differences;  // loss minus expected loss

   private:
    StepResult before_;
  };
  on_one_rank([](Communicator& world) {
    Rig rig(world);
    Pairs pairs;
    TrainingLoop loop({.engine = rig.engine,
                       .training = rig.batches,
                       .program_of = [](std::int64_t samples) { return static_cast<int>(samples); },
                       .results = rig.results,
                       .world = world,
                       .stream = rig.stream,
                       .checkpoints = rig.checkpoints,
                       .reports = rig.reports,
                       .finite = rig.finite,
                       .weights_sha256 = [] { return ""; },
                       .stop_requested = rig.stop_requested,
                       .hooks = {&pairs}},
                      rig.plan);
    CHECK(loop.run().step == 12);
    REQUIRE(pairs.differences.size() == 6);
    for (const double difference : pairs.differences) CHECK(difference == Approx(0).margin(1e-12));
  });
}

}  // namespace trainctl::test::loop_test
