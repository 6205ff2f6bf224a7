// Grids by which the kernels of group normalisation process samples: blocks sum the columns of each sample's matrix
// [positions, channels] by stripes of rows, and warps combine the sums of a group in float64. The stripes, and with
// them the order of a sample's sums, depend on the sample's shape only.
#pragma once

#include <algorithm>

#include "core/backend/cuda/device/channels.h"
#include "core/tensor/shape.h"

namespace trainctl::cuda {

// The samples of a tensor and their groups of channels. In grids, the index z is the sample.
struct GroupedSamples {
  std::int64_t count, groups, channels;
  int width;  // channels in a group

  GroupedSamples(const Shape& x, std::int64_t group_count)
      : count(x[0]), groups(group_count), channels(x.back()), width(static_cast<int>(channels / groups)) {
    require(channels <= 1 << 30, "group_norm: more than 2^30 channels");
  }
  __device__ std::int64_t group_of(std::int64_t sample, std::int64_t channel) const {
    return sample * groups + static_cast<int>(channel) / width;
  }
  dim3 blocks(const ChannelGrid& grid) const {
    dim3 blocks = grid.blocks();
    blocks.z = static_cast<unsigned>(std::clamp<std::int64_t>(count, 1, 65535));
    return blocks;
  }
};

// The two quantities of a column in a stripe, [sample][stripe][channel].
using Partials = float2*;

// The pack width of the passes over elements. Their threads keep several factors of each channel in registers.
template <int widest_pack>
constexpr int elements_width = widest_pack == 1 ? 1 : 4;

// The grids of a sample: one for sums, in which each thread has several rows, and one for the pass over elements.
template <class T, int width>
struct GroupedGrids {
  ChannelGrid sums, elements;

  explicit GroupedGrids(const Shape& x)
      : sums(x.without_front().rows(), x.back(), width, sizeof(T), 64, 8),
        elements(x.without_front().rows(), x.back(), elements_width<width>, sizeof(T), 256, 2) {}
  std::int64_t partials(const GroupedSamples& samples) const { return samples.count * sums.stripes * sums.channels; }
};

// A warp's work on groups. All threads of a warp process the same groups.
struct GroupWarp {
  __device__ static std::int64_t first() { return first_element() / 32; }
  __device__ static std::int64_t step() { return element_stride() / 32; }
  // Calls visit(stripe, channel, partial) for the thread's share of a group.
  template <class Visit>
  __device__ static void each(const ChannelGrid& grid, const GroupedSamples& samples, std::int64_t group,
                              const float2* partials, const Visit& visit) {
    const std::int64_t sample = group / samples.groups, channel = group % samples.groups * samples.width;
    for (std::int64_t i = threadIdx.x % 32; i < grid.stripes * samples.width; i += 32) {
      const std::int64_t stripe = i / samples.width, own = channel + i % samples.width;
      visit(stripe, own, partials[(sample * grid.stripes + stripe) * grid.channels + own]);
    }
  }
  // The sum over the warp's threads, returned to all of them.
  __device__ static double sum(double value) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
  }
};

}  // namespace trainctl::cuda
