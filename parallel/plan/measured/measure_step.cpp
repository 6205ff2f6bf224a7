// Times the ops of a step with communicators that have no peers.
#include "parallel/plan/measured/measure_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/backend/immediate_stream.h"
#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/median.h"
#include "core/base/thread_clock.h"
#include "core/compile/placed_program.h"
#include "core/compile/step_inputs.h"
#include "core/exec/copy_schedule.h"
#include "core/exec/engine.h"
#include "core/exec/observe/op_recorder.h"
#include "core/program/network.h"
#include "parallel/plan/measured/repeated.h"
#include "parallel/plan/measured/stand_ins.h"
#include "parallel/trainer/initial_weights.h"

namespace trainctl {
namespace {

void add_tensors(std::string& text, const PlacedProgram& program, const std::vector<TensorId>& tensors) {
  for (const TensorId id : tensors) {
    const Layout& layout = program.tensor(id).layout;
    text += format(" {}:{}:{}:{}", to_string(program.program.tensor(id).type.shape), name_of(layout.dtype),
                   layout.format, layout.bytes);
  }
}

// Returns, for example, "dense 1f00c8a5d3e2b497": the kind, and a hash of attributes, shapes, dtypes, layouts and
// implementation.
std::string op_signature(const PlacedProgram& program, const PlacedOp& placed) {
  const Op& op = placed.op;
  std::string text = format("{} {}:", placed.lowering.implementation, op.def->attributes());
  add_tensors(text, program, op.inputs);
  text += " to";
  add_tensors(text, program, op.outputs);
  return format("{} {:016x}", op.def->kind(), xxh3(text.data(), text.size()));
}

constexpr int rounds = 4;                      // each round runs steps without an observer, then steps with one
constexpr int min_steps = 2, max_steps = 250;  // number of steps of each kind in a round

// Calls the body for every kernel op that a step runs, in order: first those that refresh compute copies.
template <class Body>
void for_kernels(const PlacedProgram& program, Body body) {
  const auto all_of = [&](int segment) {
    for (const PlacedOp& op : program.segment(segment).ops) {
      if (op.op.def->trait() == OpTrait::kernel) body(op);
    }
  };
  if (program.copies_segment >= 0) all_of(program.copies_segment);
  for (const ScheduleItem& item : program.program.schedule) all_of(item.segment);
}

std::int64_t batch_bytes(const Program& program) {
  std::int64_t bytes = 0;
  for (std::size_t number = 1; number < source_count(program.batch); ++number) {
    const TensorId id = part_at(program.batch, number);
    if (id != no_tensor) bytes += program.tensor(id).type.bytes() * program.micro_batches;
  }
  return bytes;
}

// The seconds of each op, in the order of `keys`, then the seconds of a step outside its ops, then the additional
// seconds of the later of two ranks.
struct StepTimes {
  std::vector<std::string> keys;
  std::vector<double> seconds;
};

class StepTimer {
 public:
  StepTimer(const MeasuredRank& measured, Backend& backend, Communicator& together, Communicator& devices)
      : measured_(measured),
        backend_(backend),
        together_(together),
        axes_(measured.rank, measured.compiled.programs[static_cast<std::size_t>(measured.program)], backend, devices),
        engine_(backend, axes_.communicators(), measured.compiled),
        schedule_(schedule_with_copies(program(), backend.updates_copies())),
        batch_(program().program, backend) {
    engine_.download();
    initialize_weights(measured.spec, measured.spec.seed, engine_.weights());
    engine_.begin_at_weights();
    engine_.upload();
  }

  // Runs steps for about `seconds`, or for a quarter of them if it is `hurried`.
  void run(double seconds, bool hurried) {
    constexpr int warm_up = 3;
    steps_.clear();
    recorder_ = {};
    cpu_ = wall_ = 0;
    double one_step = 0;
    for (int i = 0; i < warm_up; ++i) one_step = step();
    const double of_round = reduced(one_step, Reduction::maximum) * 2 * rounds;
    const int count = static_cast<int>(std::clamp(seconds / of_round, 1.0 * min_steps, 1.0 * max_steps));
    for (int round = 0; round < (hurried ? 1 : rounds); ++round) {
      wait_for_others();
      for (int i = 0; i < count; ++i) steps_.push_back(step());
      wait_for_others();
      engine_.set_observer(&recorder_);
      for (int i = 0; i < count; ++i) step();
      engine_.set_observer(nullptr);
    }
  }

  // Returns the median step time of the slowest rank; all ranks must call this function.
  double step_seconds() { return reduced(median(steps_), Reduction::maximum); }

  // Returns the time that the steps' thread waited for its core, as a fraction of the time that it computed: the
  // maximum over the ranks, which must all call this function.
  double disturbance() {
    const bool computes_alone = backend_.on_host() && program().program.streams == 1;
    return reduced(computes_alone && cpu_ > 0 ? std::max(wall_ / cpu_ - 1, 0.0) : 0, Reduction::maximum);
  }

  // Returns means over the ranks, which must all call this function.
  StepTimes times() {
    std::map<std::string, std::pair<double, int>> ops;  // sum of the medians, number of ops; key: op_key()
    for (const OpCost& cost : op_costs(recorder_.runs())) {
      if (cost.op.placed().op.def->trait() != OpTrait::kernel) continue;
      auto& [sum, count] = ops[op_key(together_.size(), program(), cost.op.placed())];
      sum += cost.median_seconds;
      ++count;
    }
    // Includes the copies of communications, which in a run are part of the communications' time.
    double in_ops = 0;
    for (const OpCost& cost : op_costs(recorder_.runs())) in_ops += cost.median_seconds * runs_of(cost.op);
    const double of_step = median(steps_);
    // Observed ops take longer, so their times are scaled down to at most the time of an unobserved step.
    const double unobserved = std::min(of_step / in_ops, 1.0);
    std::vector<std::string> keys;
    std::vector<double> values;
    for (const auto& [key, of] : ops) {
      keys.push_back(key);
      values.push_back(unobserved * of.first / of.second);
    }
    values.push_back(std::max(of_step - in_ops, 0.0));
    values.push_back(quantile(std::sqrt(0.5)) - of_step);
    for (double& value : values) value = reduced(value, Reduction::sum) / together_.size();

    return {std::move(keys), std::move(values)};
  }

  Measurements results(const StepTimes& times, double spread) const {
    Measurements found;
    const std::size_t ops = times.keys.size();
    for (std::size_t i = 0; i < ops; ++i) found.record(times.keys[i], {times.seconds[i], spread});
    found.record(step_key(together_.size(), program()), {times.seconds[ops], times.seconds[ops + 1], spread});
    return found;
  }

 private:
  const PlacedProgram& program() const { return engine_.program(measured_.program); }

  double step() {
    const double start = seconds_now(), computed = thread_seconds();
    engine_.run(measured_.program, batch_.batch(), {1e-6, number_++, false}, result_);
    const double seconds = seconds_now() - start;
    cpu_ += thread_seconds() - computed;
    wall_ += seconds;
    return seconds;
  }

  void wait_for_others() {
    together_.barrier(host_);
    host_.synchronize();
  }

  double reduced(double value, Reduction reduction) {
    together_.all_reduce({&value, DType::float64, 1}, reduction, host_);
    host_.synchronize();
    return value;
  }

  double quantile(double fraction) const {
    std::vector<double> sorted = steps_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(fraction * static_cast<double>(sorted.size() - 1) + 0.5)];
  }

  // Returns how often a step runs an op: once for each item of the schedule with the op's segment, or once if the op
  // refreshes stale compute copies before the step, which the recorder records, too.
  double runs_of(const OpRun& op) const {
    double count = 0;
    for (const ScheduleItem& item : schedule_) count += item.segment == op.segment ? 1 : 0;
    return std::max(count, 1.0);
  }

  const MeasuredRank& measured_;
  const Backend& backend_;
  Communicator& together_;
  ImmediateStream host_;
  LoopbackAxes axes_;
  Engine engine_;
  std::vector<ScheduleItem> schedule_;  // with the items that write compute copies
  RandomBatch batch_;
  OpRecorder recorder_;
  StepResult result_;
  std::int64_t number_ = 0;
  std::vector<double> steps_;  // seconds of the unobserved steps
  double cpu_ = 0, wall_ = 0;  // CPU seconds and wall-clock seconds of all steps
};

}  // namespace

std::string key_prefix(int ranks) { return format("{} at once: ", ranks); }

std::string op_key(int ranks, const PlacedProgram& program, const PlacedOp& op) {
  const int streams = program.program.streams;  // ops of several streams overlap, so each counts less than alone
  return key_prefix(ranks) + (streams > 1 ? format("{} streams: ", streams) : "") + "op " + op_signature(program, op);
}

std::string step_key(int ranks, const PlacedProgram& program) {
  std::int64_t ops = 0;
  for_kernels(program, [&](const PlacedOp&) { ++ops; });
  return key_prefix(ranks) + format("step {} ops, {} bytes", ops, batch_bytes(program.program));
}

std::optional<double> step_spread(const Measurements& measurements, int ranks, const PlacedProgram& program) {
  std::optional<double> spread = 0;
  const auto include = [&](const std::string& key, std::size_t number) {
    const std::vector<double>* values = measurements.find(key);
    if (values == nullptr || values->size() <= number) {
      spread.reset();
    } else if (spread) {
      spread = std::max(*spread, values->at(number));
    }
  };
  include(step_key(ranks, program), 2);
  for_kernels(program, [&](const PlacedOp& op) { include(op_key(ranks, program, op), 1); });
  return spread;
}

bool has_step(const Measurements& measurements, int ranks, const PlacedProgram& program) {
  const std::optional<double> spread = step_spread(measurements, ranks, program);
  return spread && *spread <= wide_spread;
}

Measurements measure_step(const MeasuredRank& measured, Backend& backend, Communicator& together, Communicator& devices,
                          double seconds, const OutOfTime& out_of_time) {
  StepTimer timer(measured, backend, together, devices);
  Repeated repeated;
  std::vector<StepTimes> times;
  std::vector<double> disturbances;
  while (true) {
    const bool hurried = out_of_time && out_of_time();
    if (repeated.settled(hurried)) break;
    timer.run(seconds / 2, hurried);
    repeated.add({timer.step_seconds()});
    times.push_back(timer.times());
    disturbances.push_back(timer.disturbance());
  }
  return timer.results(times[repeated.chosen()], std::max(repeated.spread(), disturbances[repeated.chosen()]));
}

}  // namespace trainctl
