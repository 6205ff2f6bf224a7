// Adds the squares of each rank's shards of the gradients by layer, and the sums over the ranks.
#include "parallel/trainer/hooks/gradient_norms.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "core/exec/interfaces/metrics_sink.h"
#include "core/exec/observe/step_gradients.h"
#include "parallel/trainer/loop/training_state.h"

namespace trainctl {
namespace {

// The path of the layer of a parameter: "block/conv1" for "block/conv1/kernel".
std::string layer_of(const std::string& parameter) { return parameter.substr(0, parameter.rfind('/')); }

double sum_of_squares(const View& view) {
  double sum = 0;
  const float* values = view.as<float>();
  for (std::int64_t i = 0; i < view.count; ++i) sum += double{values[i]} * values[i];
  return sum;
}

}  // namespace

void GradientNorms::on_pause(const TrainingState& state, std::int64_t before) {
  if (!passed_multiple(before, state.step, every_)) return;
  std::vector<float> memory;
  const std::vector<NamedTensor> gradients = read_gradients(engine_, state.program, memory);
  if (!plan_) plan_ = plan_shards(gradients, world_, stream_);
  const auto held = by_name(gradients);
  std::map<std::string, double> squares;  // by layer; the same layers on all ranks
  for (const PlannedTensor& tensor : plan_->tensors()) {
    double& sum = squares[layer_of(tensor.name)];
    const auto counts_here = [&](const PlannedShard& shard) { return shard.writer == world_.rank(); };
    if (std::ranges::any_of(tensor.shards, counts_here)) sum += sum_of_squares(held.at(tensor.name)->view);
  }
  std::vector<double> sums;
  std::ranges::transform(squares, std::back_inserter(sums), [](const auto& of) { return of.second; });
  world_.all_reduce({sums.data(), DType::float64, std::ssize(sums)}, Reduction::sum, stream_);
  stream_.synchronize();
  if (sink_ == nullptr) return;
  GradientNormsEvent event{.step = state.step, .norms = {}};
  auto sum = sums.begin();
  for (const auto& [layer, unused] : squares) event.norms[layer] = state.gradient_scale * std::sqrt(*sum++);
  sink_->gradient_norms(event);
}

}  // namespace trainctl
