// Counts the values of each rank's shards and adds the counts over the ranks.
#include "parallel/trainer/hooks/histogram_pass.h"

#include <algorithm>
#include <vector>

#include "core/exec/interfaces/detail_sink.h"
#include "core/exec/observe/step_gradients.h"
#include "core/metrics/histogram.h"
#include "parallel/trainer/loop/training_state.h"

namespace trainctl {

void HistogramPass::on_pause(const TrainingState& state, std::int64_t before) {
  if (passed_multiple(before, state.step, every_)) run(state.step, state.program, state.gradient_scale);
}

void HistogramPass::run(std::int64_t step, int program, double gradient_scale) {
  engine_.download();
  count("weights/", weights_, engine_.weights(), 1, step);
  std::vector<float> memory;
  const std::vector<NamedTensor> gradients = read_gradients(engine_, program, memory);
  if (!gradients_) gradients_ = plan_shards(gradients, world_, stream_);
  count("gradients/", *gradients_, gradients, gradient_scale, step);
}

void HistogramPass::count(const std::string& prefix, const ShardPlan& plan, std::span<const NamedTensor> held,
                          double scale, std::int64_t step) {
  const auto held_by_name = by_name(held);
  for (const PlannedTensor& tensor : plan.tensors()) {
    const auto counts_here = [&](const PlannedShard& shard) { return shard.writer == world_.rank(); };
    Histogram histogram;
    if (std::ranges::any_of(tensor.shards, counts_here)) {
      const View& view = held_by_name.at(tensor.name)->view;
      histogram.add({view.as<float>(), static_cast<std::size_t>(view.count)}, scale);
    }
    const auto size = [](const auto& values) { return static_cast<std::int64_t>(values.size()); };
    const auto counts = histogram.counts();
    const auto sums = histogram.sums(), extremes = histogram.extremes();
    world_.all_reduce({counts.data(), DType::int64, size(counts)}, Reduction::sum, stream_);
    world_.all_reduce({sums.data(), DType::float64, size(sums)}, Reduction::sum, stream_);
    world_.all_reduce({extremes.data(), DType::float64, size(extremes)}, Reduction::minimum, stream_);
    stream_.synchronize();
    if (sink_ != nullptr) sink_->histogram(step, prefix + tensor.name, histogram);
  }
}

}  // namespace trainctl
