// Tests the order of steps, hooks, evaluations and checkpoints in the training loop, with an engine that computes
// nothing.
#include "parallel/trainer/loop/loop.h"
#include "core/exec/interfaces/snapshot_metadata.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/exec/step_work.h"
#include "parallel/comm/communicators.h"
#include "parallel/comm/host_memory.h"
#include "parallel/trainer/hooks/hook.h"
#include "parallel/trainer/loop/checkpoints.h"
#include "parallel/trainer/loop/finite_check.h"
#include "parallel/trainer/loop/step_reports.h"
#include "test/catch.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::test::loop_test {
namespace {

using Log = std::vector<std::string>;

// Step number i, from 0, has loss 1 / (i + 1) for each of its 4 samples. The ranks agree on a stop.
class FakeEngine final : public StepEngine {
 public:
  FakeEngine(Log& log, int at_once, Communicator& world) : log_(log), at_once_(at_once), world_(world), values_{1, 2} {
    weights_ = {{"w", {2}, {values_.data(), DType::float32, 2}}};
  }

  void start(int program, const Batch& batch, const StepInput& input) override {
    require(program == static_cast<int>(batch.global_count), "the program fits the batch");
    started_.push_back(input);
    log_.push_back(format("start {}", input.step));
    ++steps;
  }
  void finish(StepResult& result) override {
    const StepInput input = started_.front();
    started_.erase(started_.begin());
    const double loss = input.step == nan_step ? std::nan("") : 1.0 / static_cast<double>(input.step + 1);
    std::int32_t stop = input.stop;
    world_.all_reduce({&stop, DType::int32, 1}, Reduction::maximum, stream_);
    stream_.synchronize();
    result = {.count = 4, .sums = {4 * loss, 4}, .gradient_norm = 1, .not_finite = std::isnan(loss), .stop = stop != 0};
    ++values_[0];
    rates.push_back(input.learning_rate);
  }
  int steps_at_once() const override { return at_once_; }
  void set_timing(bool) override {}
  const Phases& phases() const override { return phases_; }
  void set_observer(OpObserver*) override {}
  void download() override {}
  const std::vector<NamedTensor>& weights() const override { return weights_; }
  const std::vector<NamedTensor>& state() const override { return state_; }
  Memory allocate_host(std::int64_t bytes) override { return trainctl::allocate_host(bytes); }
  void copy(std::span<const NamedTensor> tensors, std::byte* to) override {
    for (const NamedTensor& tensor : tensors) std::memcpy(to, tensor.view.data, sizeof(float) * values_.size());
  }

  std::int64_t nan_step = -1;
  std::atomic<int> steps{0};  // number of started steps
  std::vector<double> rates;

 private:
  Log& log_;
  int at_once_;
  Communicator& world_;
  ImmediateStream stream_;
  std::vector<float> values_;  // the first grows by 1 in each step
  std::vector<NamedTensor> weights_, state_;
  std::vector<StepInput> started_;
  Phases phases_;
};

// Batches of 4 samples, 5 in an epoch.
class FakeBatches final : public BatchSource {
 public:
  const Batch& next() override {
    batch_.count = batch_.global_count = 4;
    batch_.position = position();
    batch_.last_of_epoch = taken_ % 5 == 4;
    ++taken_;
    return batch_;
  }
  DataPosition position() const override { return {1, taken_ / 5, taken_ % 5 * 4}; }
  std::int64_t samples_per_epoch() const override { return 20; }
  std::int64_t batch_size() const override { return 4; }
  std::int64_t last_batch_size() const override { return 4; }
  std::int64_t batch_bytes() const override { return 0; }

 private:
  Batch batch_;
  std::int64_t taken_ = 0;
};

// Keeps the last committed snapshot, and the first weight of every snapshot.
class FakeStore final : public SnapshotStore, public SnapshotSink {
 public:
  SnapshotTarget begin(std::int64_t step, std::int64_t bytes) override { return {format("{}", step), "", bytes}; }
  void abandon() override {}
  std::string write(const SnapshotTarget& target, const SnapshotFile& file,
                    std::span<const NamedTensor> parts) override {
    if (before_write) before_write(std::stoll(target.path));
    if (file.content == SnapshotContent::weights) values.push_back(parts.front().view.as<float>()[0]);
    return "";
  }
  std::string commit(const Snapshot& snapshot, std::span<const std::string>) override {
    last = snapshot;
    return format("saved {}", snapshot.step);
  }

  Snapshot last;
  std::vector<float> values;
  std::function<void(std::int64_t step)> before_write;
};

// Logs the checkpoints that are reported.
class FakeSink final : public MetricsSink {
 public:
  explicit FakeSink(Log& log) : log_(log) {}
  void start(const StartEvent&) override {}
  void step(const StepEvent&) override {}
  void epoch(const EpochEvent&) override {}
  void not_finite(const NotFiniteEvent& event) override {
    log_.push_back(format("{} of step {}, {}", event.action, event.step, event.count));
  }
  void checkpoint(const CheckpointEvent& event) override { log_.push_back(format("save {}", event.step)); }
  void end(const EndEvent&) override {}

 private:
  Log& log_;
};

// Logs each call of the loop; asks for a pause after every third step.
class LoggingHook : public TrainingHook {
 public:
  explicit LoggingHook(Log& log) : log_(log) {}
  std::int64_t next_pause(std::int64_t step) const override { return next_multiple(step, 3); }
  void on_pause(const TrainingState& state, std::int64_t before) override {
    if (passed_multiple(before, state.step, 3)) log_.push_back(format("pause {}", state.step));
  }
  void on_step_end(const TrainingState& state, double loss) override {
    require(loss == Approx(1.0 / static_cast<double>(state.step)), "the loss of the step");
    log_.push_back(format("step {}", state.step));
    if (after_step) after_step();
  }
  void on_evaluation(TrainingState& state) override { log_.push_back(format("evaluation {}", state.step)); }
  void on_epoch_end(const TrainingState&, double epochs, double) override {
    log_.push_back(format("epoch {}", epochs));
    if (epochs == last_epoch) why_end_ = "enough";
  }
  void on_train_end(const TrainingState&) override { log_.push_back("end"); }
  double learning_rate(double scheduled) const override { return scheduled / 2; }
  std::string why_end() const override { return why_end_; }
  void save(SnapshotMetadata& metadata) const override { metadata["hook"] = "kept"; }
  void restore(const SnapshotMetadata& metadata) override { restored = metadata.at("hook"); }

  double last_epoch = 0;
  std::string restored;
  std::function<void()> after_step;

 private:
  Log& log_;
  std::string why_end_;
};

// All objects that a training loop of one rank needs.
struct Rig {
  explicit Rig(Communicator& communicator, int at_once = 1, bool background = false)
      : world(communicator),
        engine(log, at_once, world),
        saver(engine, tensors, {&store, world.rank() == 0 ? &store : nullptr}, background, world, stream) {
    plan.steps_per_epoch = 5;
    plan.total_steps = 12;
    plan.checkpoint_every = 4;
    plan.learning_rate = [](std::int64_t step) { return static_cast<double>(step); };
  }

  EndEvent run(const Snapshot* resumed = nullptr) {
    TrainingLoop loop({.engine = engine,
                       .training = batches,
                       .program_of = [](std::int64_t samples) { return static_cast<int>(samples); },
                       .results = results,
                       .world = world,
                       .stream = stream,
                       .checkpoints = checkpoints,
                       .reports = reports,
                       .finite = finite,
                       .sink = &sink,
                       .find_not_finite =
                           [this](int, int back) {
                             log.push_back(format("search {} back", back));
                             return std::string("relu");
                           },
                       .weights_sha256 = [] { return ""; },
                       .stop_requested = [this] { return stop_requested(); },
                       .hooks = {&hook}},
                      plan);
    if (resumed != nullptr) loop.resume(*resumed, true);
    const EndEvent end = loop.run();
    rollback = loop.rollback();
    return end;
  }

  Communicator& world;
  ImmediateStream stream;
  Log log;
  FakeEngine engine;
  FakeBatches batches;
  FakeStore store;
  FakeSink sink{log};
  SnapshotPlan tensors = plan_snapshot(engine.weights(), {}, world, stream);
  StagedSaver saver;
  std::vector<bool> told;  // for each call of tell_stop_time(): whether ranks are saving
  Checkpoints checkpoints{
      {.saver = saver, .sink = &sink, .tell_stop_time = [this](double, bool saves, bool) { told.push_back(saves); }}};
  StepReports reports{nullptr, nullptr, 10};
  FiniteCheck finite{false};
  LoggingHook hook{log};
  std::vector<MetricResult> results{
      {"loss", 0, 1, [](std::span<const double> sums, double count) { return sums[0] / count; }}};
  LoopPlan plan;
  std::optional<Rollback> rollback;
  std::function<bool()> stop_requested = [] { return false; };
};

void on_one_rank(const std::function<void(Communicator&)>& run) {
  const auto world = solo_communicator();
  run(*world);
}

}  // namespace

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

TEST_CASE("a loss that is not finite ends the run, and the error names step, tensor and last checkpoint") {
  on_one_rank([](Communicator& world) {
    Rig rig(world, 2);
    rig.engine.nan_step = 6;
    try {
      rig.run();
      FAIL("the run did not end");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::diverged);
      CHECK(std::string(error.what()).find("at step 7 (epoch 1.20): the first tensor that is not finite is relu") !=
            std::string::npos);
      CHECK(std::string(error.what()).find("the last checkpoint is of step 4") != std::string::npos);
    }
    CHECK(rig.log.back() == "search 1 back");
  });
}

TEST_CASE("a step that is not finite is skipped: it counts, but not for the means, and too many in a row end the run") {
  on_one_rank([](Communicator& world) {
    for (const int at_once : {1, 2}) {
      Rig rig(world, at_once);
      rig.finite = FiniteCheck(false, {OnNotFinite::skip, 1});
      rig.engine.nan_step = 6;
      const EndEvent end = rig.run();
      CHECK(end.status == "completed");
      CHECK(end.step == 12);
      CHECK(rig.store.last.position == DataPosition{1, 2, 8});
      CHECK(std::count(rig.log.begin(), rig.log.end(), "skip of step 7, 1") == 1);
      CHECK(std::count(rig.log.begin(), rig.log.end(), "step 7") == 0);
      CHECK(std::count(rig.log.begin(), rig.log.end(), "step 8") == 1);
      CHECK(rig.finite.skipped().in_a_row() == 0);
    }
    Rig rig(world);
    rig.finite = FiniteCheck(false, {OnNotFinite::skip, 1});
    rig.finite.skipped().count_left_out();  // as after a resume
    rig.engine.nan_step = 0;
    CHECK_THROWS_WITH(rig.run(), Catch::Contains("the updates of 1 step before it"));
  });
}

TEST_CASE("a run goes back to a checkpoint and then passes the batch without computing it, also if steps overlap") {
  on_one_rank([](Communicator& world) {
    for (const int at_once : {1, 2}) {
      Rig first(world, at_once), second(world, at_once);
      for (Rig* rig : {&first, &second}) rig->finite = FiniteCheck(false, {OnNotFinite::rollback, 10});
      first.engine.nan_step = 6;
      first.run();
      REQUIRE(first.rollback);
      CHECK(first.log.front() == "save 0");
      CHECK(first.rollback->step == 6);
      CHECK(first.rollback->skipped == 6);
      CHECK(first.store.last.step == 4);
      Snapshot resumed = first.store.last;
      first.rollback->batches.save(resumed.metadata);
      CHECK(resumed.metadata.at("skipped_batches") == "6");
      for (int i = 0; i < 4; ++i) second.batches.next();
      const EndEvent end = second.run(&resumed);
      CHECK_FALSE(second.rollback);
      CHECK(end.step == 12);
      CHECK(second.log.front() == "save 4");  // with the batch that is skipped
      CHECK(std::count(second.log.begin(), second.log.end(), "start 6") == 0);
      CHECK(std::count(second.log.begin(), second.log.end(), "start 7") == 1);
      CHECK(second.store.last.position == DataPosition{1, 2, 8});
      CHECK(second.store.last.metadata.at("skipped_batches") == "6");
    }
  });
}

TEST_CASE("a batch is skipped only as often as the limit allows, and the batch before if the parameters are bad") {
  SkippedBatches skipped;
  for (const std::int64_t step : {3, 8, 9}) skipped.add(step);
  CHECK(skipped.contains(8));
  CHECK_FALSE(skipped.contains(7));
  CHECK(skipped.count_from(4) == 2);
  CHECK(skipped.last_computed_before(10) == 7);
  CHECK(skipped.last_computed_before(7) == 6);
  CHECK(skipped.last_computed_before(0) == -1);
  skipped.count_left_out();
  SnapshotMetadata metadata;
  skipped.save(metadata);
  SkippedBatches restored;
  restored.add(1);
  restored.restore(metadata);
  CHECK(restored.count_from(0) == 3);
  CHECK(restored.in_a_row() == 1);
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

// Waits at most ten seconds for the condition; returns whether it became true.
bool becomes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

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
