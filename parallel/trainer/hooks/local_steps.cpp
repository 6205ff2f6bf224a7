// Averages replicas that have taken steps independently.
#include "parallel/trainer/hooks/local_steps.h"

#include <algorithm>
#include <cmath>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/exec/engine.h"
#include "core/graph/ops/normalization/statistics.h"
#include "parallel/trainer/loop/step_reports.h"

namespace trainctl {
namespace {

// The values before the sums in `since_`.
enum Flag : std::size_t { not_finite, stop, count, flags };

constexpr auto max_values = static_cast<std::size_t>(max_averaged_values);

// Returns the names of trained parameters and of running statistics that the program updates.
std::set<std::string> updated_by(const PlacedProgram& placed) {
  const Program& program = placed.program;
  std::set<std::string> names;
  for (const FlatEntry& entry : program.flat.parameters) {
    if (entry.offset < program.flat.trainable_count) names.insert(program.tensor(entry.parameter).name);
  }
  for (const PlacedSegment& segment : placed.segments) {
    for (const PlacedOp& placed_op : segment.ops) {
      if (placed_op.op.get_if<UpdateStatistics>() == nullptr) continue;
      for (TensorId statistic : placed_op.op.outputs) names.insert(program.tensor(statistic).name);
    }
  }
  return names;
}

}  // namespace

LocalSteps::LocalSteps(const Averaging& averaging, Engine& engine, Communicator& replicas, Stream& stream,
                       StepReports* reports)
    : averaging_(averaging),
      engine_(engine),
      replicas_(replicas),
      stream_(stream),
      reports_(reports),
      updated_(updated_by(engine.program(0))),
      since_(flags) {}

bool LocalSteps::combine(std::int64_t step, StepResult& result) {
  add(result);
  if (next_pause(step - 1) != step) return false;
  const double begin = seconds_now();
  average(result);
  if (reports_ != nullptr) reports_->add_communication(seconds_now() - begin);
  return true;
}

std::int64_t LocalSteps::next_pause(std::int64_t step) const {
  const std::int64_t next =
      std::min(next_multiple(step, averaging_.every), next_multiple(step, averaging_.steps_per_epoch));
  return averaging_.total_steps > step ? std::min(next, averaging_.total_steps) : next;
}

void LocalSteps::add(const StepResult& step) {
  require(!step.abandoned, "a replica that takes steps independently abandoned a step");
  since_.resize(flags + step.sums.size());
  const bool finite = !step.not_finite && std::isfinite(step.gradient_norm);
  since_[not_finite] += finite ? 0 : 1;
  since_[stop] += step.stop ? 1 : 0;
  since_[count] += step.count;
  for (std::size_t i = 0; i < step.sums.size(); ++i) since_[flags + i] += step.sums[i];
  norm_ = step.gradient_norm;
}

void LocalSteps::average(StepResult& result) {
  std::vector<double> totals = since_;
  replicas_.all_reduce({totals.data(), DType::float64, static_cast<std::int64_t>(totals.size())}, Reduction::sum,
                       stream_);
  stream_.synchronize();
  result.not_finite = totals[not_finite] > 0;
  result.stop = totals[stop] > 0;
  result.count = totals[count];
  result.sums.assign(totals.begin() + flags, totals.end());
  result.gradient_norm = norm_;
  if (!result.not_finite && result.count > 0) average_values(since_[count] / totals[count]);
  std::fill(since_.begin(), since_.end(), 0.0);
}

// Replaces every value by its weighted sum over the replicas. `share`: the weight of this replica.
void LocalSteps::average_values(double share) {
  engine_.download();
  std::vector<NamedTensor> tensors = engine_.weights();
  std::erase_if(tensors, [&](const NamedTensor& tensor) { return !updated_.contains(tensor.name); });
  tensors.insert(tensors.end(), engine_.state().begin(), engine_.state().end());
  struct Range {
    float* values;
    std::size_t count;
  };
  std::vector<Range> ranges;  // ranges of values in `packed`
  std::vector<float> packed;
  const auto flush = [&] {
    reduce(packed, share);
    auto from = packed.begin();
    for (const Range& range : ranges) {
      std::copy_n(from, range.count, range.values);
      from += static_cast<std::ptrdiff_t>(range.count);
    }
    ranges.clear();
    packed.clear();
  };
  for (const NamedTensor& tensor : tensors) {
    auto* const values = tensor.view.as<float>();
    const auto elements = static_cast<std::size_t>(tensor.view.count);
    for (std::size_t first = 0; first < elements;) {
      const std::size_t added = std::min(elements - first, max_values - packed.size());
      packed.insert(packed.end(), values + first, values + first + added);
      ranges.push_back({values + first, added});
      first += added;
      if (packed.size() == max_values) flush();
    }
  }
  if (!packed.empty()) flush();
  engine_.upload();
}

void LocalSteps::reduce(std::vector<float>& values, double share) {
  for (float& value : values) value = static_cast<float>(value * share);
  replicas_.all_reduce({values.data(), DType::float32, static_cast<std::int64_t>(values.size())}, Reduction::sum,
                       stream_);
  stream_.synchronize();
}

}  // namespace trainctl
