// Averages replicas that have taken steps alone.
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

// What lies in front of the sums.
enum Flag : std::size_t { not_finite, stop, count, flags };

constexpr auto most_values = static_cast<std::size_t>(most_averaged_values);

// The names of the parameters that train and of the running statistics that move.
std::set<std::string> learnt_by(const PlacedProgram& placed) {
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
      learnt_(learnt_by(engine.program(0))),
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
  require(!step.abandoned, "a replica that is alone waits for its data");
  since_.resize(flags + step.sums.size());
  const bool finite = !step.not_finite && std::isfinite(step.gradient_norm);
  since_[not_finite] += finite ? 0 : 1;
  since_[stop] += step.stop ? 1 : 0;
  since_[count] += step.count;
  for (std::size_t i = 0; i < step.sums.size(); ++i) since_[flags + i] += step.sums[i];
  norm_ = step.gradient_norm;
}

void LocalSteps::average(StepResult& result) {
  std::vector<double> all = since_;
  replicas_.all_reduce({all.data(), DType::float64, static_cast<std::int64_t>(all.size())}, Reduction::sum, stream_);
  stream_.synchronize();
  result.not_finite = all[not_finite] > 0;
  result.stop = all[stop] > 0;
  result.count = all[count];
  result.sums.assign(all.begin() + flags, all.end());
  result.gradient_norm = norm_;
  if (!result.not_finite && result.count > 0) average_values(since_[count] / all[count]);
  std::fill(since_.begin(), since_.end(), 0.0);
}

// Every value becomes the sum over the replicas of its values times their shares.
void LocalSteps::average_values(double share) {
  engine_.download();
  std::vector<NamedTensor> tensors = engine_.weights();
  std::erase_if(tensors, [&](const NamedTensor& tensor) { return !learnt_.contains(tensor.name); });
  tensors.insert(tensors.end(), engine_.state().begin(), engine_.state().end());
  struct Part {
    float* values;
    std::size_t count;
  };
  std::vector<Part> parts;  // that are packed
  std::vector<float> packed;
  const auto flush = [&] {
    reduce(packed, share);
    auto from = packed.begin();
    for (const Part& part : parts) {
      std::copy_n(from, part.count, part.values);
      from += static_cast<std::ptrdiff_t>(part.count);
    }
    parts.clear();
    packed.clear();
  };
  for (const NamedTensor& tensor : tensors) {
    auto* const values = tensor.view.as<float>();
    const auto elements = static_cast<std::size_t>(tensor.view.count);
    for (std::size_t first = 0; first < elements;) {
      const std::size_t some = std::min(elements - first, most_values - packed.size());
      packed.insert(packed.end(), values + first, values + first + some);
      parts.push_back({values + first, some});
      first += some;
      if (packed.size() == most_values) flush();
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
