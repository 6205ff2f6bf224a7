// A training loop of one rank with an engine that computes nothing, and a log of what the loop calls.
#pragma once

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/exec/step_work.h"
#include "parallel/comm/communicators.h"
#include "parallel/comm/host_memory.h"
#include "parallel/trainer/hooks/hook.h"
#include "parallel/trainer/loop/checkpoints.h"
#include "parallel/trainer/loop/finite_check.h"
#include "parallel/trainer/loop/loop.h"
#include "parallel/trainer/loop/step_reports.h"
#include "test/catch.h"

namespace trainctl::test::loop_test {

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
  void on_train_begin(const TrainingState&) override {
    if (before_training) before_training();
  }
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
  std::function<void()> before_training, after_step;

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

inline void on_one_rank(const std::function<void(Communicator&)>& run) {
  const auto world = solo_communicator();
  run(*world);
}

}  // namespace trainctl::test::loop_test
