// Running statistics of all layers: one launch adds the batch statistics to their sums, another updates the moving
// statistics from the sums.
#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"
#include "core/graph/ops/normalization/statistics.h"
#include "core/graph/ops/training/update.h"

namespace trainctl::cuda {
namespace {

// The part of one block: at most as many values of one statistic as the block has threads.
struct Part {
  Address from, to;
  int count;
  float momentum;  // of the update

  __device__ static float* at(const Address& address, std::byte* slot) {
    return reinterpret_cast<float*>((address.fixed != nullptr ? address.fixed : slot) + address.offset);
  }
};

// The parts of all blocks, in GPU memory.
struct Parts {
  std::shared_ptr<const Part> data;
  int count = 0;

  // `counts` are the numbers of values of the outputs. Without momenta each part's momentum is 0.
  Parts(const Binding& binding, const std::vector<std::int64_t>& counts, const std::vector<float>& momenta) {
    std::vector<Part> parts;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      for (std::int64_t first = 0; first < counts[i]; first += block_threads) {
        Part part{binding.inputs[i], binding.outputs[i],
                  static_cast<int>(std::min<std::int64_t>(block_threads, counts[i] - first)),
                  momenta.empty() ? 0.0f : momenta[i]};
        part.from.offset += first * size_of(DType::float32);
        part.to.offset += first * size_of(DType::float32);
        parts.push_back(part);
      }
    }
    count = static_cast<int>(parts.size());
    data = on_device(parts);
  }
};

__global__ void update_statistics(const Part* parts, std::byte* slot, const float* count, const float* flags) {
  const Part part = parts[blockIdx.x];
  if (flags[agree_not_finite] != 0 || !(*count > 0) || static_cast<int>(threadIdx.x) >= part.count) return;
  float& moving = Part::at(part.to, slot)[threadIdx.x];
  moving = part.momentum * moving + (1.0f - part.momentum) * (Part::at(part.from, slot)[threadIdx.x] / *count);
}

__global__ void accumulate_statistics(const Part* parts, std::byte* slot, const float* samples, bool add) {
  const Part part = parts[blockIdx.x];
  if (static_cast<int>(threadIdx.x) >= part.count) return;
  float& sum = Part::at(part.to, slot)[threadIdx.x];
  sum = (add ? sum : 0.0f) + *samples * Part::at(part.from, slot)[threadIdx.x];
}

}  // namespace

Lowering lower_update_statistics(const LowerContext& context) {
  return bound_kernel(context, [counts = context.output_counts(),
                                momenta = context.op.as<UpdateStatistics>().momenta](const Binding& b) {
    return [parts = Parts(b, counts, momenta), statistics = counts.size()](const Buffers& p) {
      launch(update_statistics, parts.count, block_threads, p.stream, parts.data.get(), p.slot.base,
             p.in<float>(statistics), p.in<float>(statistics + 1));
    };
  });
}

Lowering lower_accumulate_statistics(const LowerContext& context) {
  const bool add = context.op.as<AccumulateStatistics>().accumulate;
  return bound_kernel(context, [add, counts = context.output_counts()](const Binding& b) {
    return [add, parts = Parts(b, counts, {}), statistics = counts.size()](const Buffers& p) {
      launch(accumulate_statistics, parts.count, block_threads, p.stream, parts.data.get(), p.slot.base,
             p.in<float>(statistics), add);
    };
  });
}

}  // namespace trainctl::cuda
