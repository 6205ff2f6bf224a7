// Running statistics of all layers: one launch adds the batch statistics to their sums, another updates the moving
// statistics from the sums.
#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"
#include "core/graph/ops/normalization/statistics.h"
#include "core/graph/ops/training/update.h"

namespace trainctl::cuda {
namespace {

// The values of one statistic that one block updates: at most one for each thread of the block.
struct StatisticSlice {
  Address from, to;
  int count;
  float momentum;  // momentum of the moving average

  __device__ static float* at(const Address& address, std::byte* slot) {
    return reinterpret_cast<float*>((address.fixed != nullptr ? address.fixed : slot) + address.offset);
  }
};

// The slices of all blocks, in GPU memory.
struct StatisticSlices {
  std::shared_ptr<const StatisticSlice> data;
  int count = 0;

  // `counts` are the numbers of values of the outputs. Without momenta the momentum of each slice is 0.
  StatisticSlices(const Binding& binding, const std::vector<std::int64_t>& counts, const std::vector<float>& momenta) {
    std::vector<StatisticSlice> slices;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      for (std::int64_t first = 0; first < counts[i]; first += block_threads) {
        StatisticSlice slice{binding.inputs[i], binding.outputs[i],
                             static_cast<int>(std::min<std::int64_t>(block_threads, counts[i] - first)),
                             momenta.empty() ? 0.0f : momenta[i]};
        slice.from.offset += first * size_of(DType::float32);
        slice.to.offset += first * size_of(DType::float32);
        slices.push_back(slice);
      }
    }
    count = static_cast<int>(slices.size());
    data = on_device(slices);
  }
};

__global__ void update_statistics(const StatisticSlice* slices, std::byte* slot, const float* count, const float* flags,
                                  const float* norm) {
  const StatisticSlice slice = slices[blockIdx.x];
  const bool finite = flags[agree_not_finite] == 0 && isfinite(*norm);
  if (!finite || !(*count > 0) || static_cast<int>(threadIdx.x) >= slice.count) return;
  float& moving = StatisticSlice::at(slice.to, slot)[threadIdx.x];
  moving =
      slice.momentum * moving + (1.0f - slice.momentum) * (StatisticSlice::at(slice.from, slot)[threadIdx.x] / *count);
}

__global__ void accumulate_statistics(const StatisticSlice* slices, std::byte* slot, const float* samples, bool add) {
  const StatisticSlice slice = slices[blockIdx.x];
  if (static_cast<int>(threadIdx.x) >= slice.count) return;
  float& sum = StatisticSlice::at(slice.to, slot)[threadIdx.x];
  sum = (add ? sum : 0.0f) + *samples * StatisticSlice::at(slice.from, slot)[threadIdx.x];
}

}  // namespace

Lowering lower_update_statistics(const LowerContext& context) {
  return bound_kernel(context, [counts = context.output_counts(),
                                momenta = context.op.as<UpdateStatistics>().momenta](const Binding& b) {
    return [slices = StatisticSlices(b, counts, momenta), statistics = counts.size()](const Buffers& p) {
      launch(update_statistics, slices.count, block_threads, p.stream, slices.data.get(), p.slot.base,
             p.in<float>(statistics), p.in<float>(statistics + 1), p.in<float>(statistics + 2));
    };
  });
}

Lowering lower_accumulate_statistics(const LowerContext& context) {
  const bool add = context.op.as<AccumulateStatistics>().accumulate;
  return bound_kernel(context, [add, counts = context.output_counts()](const Binding& b) {
    return [add, slices = StatisticSlices(b, counts, {}), statistics = counts.size()](const Buffers& p) {
      launch(accumulate_statistics, slices.count, block_threads, p.stream, slices.data.get(), p.slot.base,
             p.in<float>(statistics), add);
    };
  });
}

}  // namespace trainctl::cuda
