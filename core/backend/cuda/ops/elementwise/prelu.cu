// Parametric ReLU and its gradients, over a matrix in which each column has an alpha. Rows are positions or samples.
#include "core/graph/ops/elementwise/prelu.h"

#include "core/backend/cuda/device/channels.h"
#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// y may be x.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads) prelu(ChannelGrid grid, const T* x, const float* alpha, T* y) {
  const ChannelThread at(grid);
  if (!at.inside) return;
  float slope[width];
  read_channels(alpha, at.channel, slope);
  const auto read = [&](std::int64_t offset) { return pack_at<width>(x + offset); };
  each_offset<2>(grid, at, read, [&](std::int64_t offset, const Pack<T, width>& pack) {
    Pack<T, width> ys;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float value = load(pack.values[k]);
      ys.values[k] = store<T>(value > 0 ? value : value * slope[k]);
    }
    pack_at<width>(y + offset) = ys;
  });
}

template <class T, int width>
struct PreluRow {
  Pack<T, width> dy, x;
};

// Blocks write dx and sum stripes of rows, and the last block of each tile of columns adds the stripes in order.
// `partial` [stripe][column] is used if there are several stripes. dx may be dy.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    prelu_gradient(ChannelGrid grid, const T* dy, const T* x, const float* alpha, bool accumulate, float* partial,
                   unsigned* counters, T* dx, float* dalpha) {
  const ChannelThread at(grid);
  float values[1][width] = {}, sums[1];
  if (at.inside) {
    float slope[width];
    read_channels(alpha, at.channel, slope);
    const auto read = [&](std::int64_t offset) {
      return PreluRow<T, width>{pack_at<width>(dy + offset), pack_at<width>(x + offset)};
    };
    each_offset<2>(grid, at, read, [&](std::int64_t offset, const PreluRow<T, width>& row) {
      Pack<T, width> dxs;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float value = load(row.x.values[k]), gradient = load(row.dy.values[k]);
        dxs.values[k] = store<T>(value > 0 ? gradient : gradient * slope[k]);
        values[0][k] += value > 0 ? 0.0f : gradient * value;
      }
      pack_at<width>(dx + offset) = dxs;
    });
  }
  sum_lanes(values, grid.tile, sums);
  const std::int64_t column = own_channel(grid);
  if (grid.stripes > 1) {
    if (column >= 0) partial[blockIdx.y * grid.channels + column] = sums[0];
    if (!last_block(counters + blockIdx.x, gridDim.y)) return;
    float joined[1][1] = {};
    if (const std::int64_t own = joined_channel(grid); own >= 0) {
      const auto read = [&](std::int64_t stripe) { return fresh(partial + stripe * grid.channels + own); };
      each<8>(joined_first(grid), grid.stripes, joined_step(grid), read,
              [&](std::int64_t, float value) { joined[0][0] += value; });
    }
    sum_lanes(joined, grid.span(), sums);
  }
  if (column >= 0) dalpha[column] = accumulate ? dalpha[column] + sums[0] : sums[0];
}

// x as a matrix with one column for each value of alpha. The blocks fill any GPU; their number is the same on all GPUs.
template <class T, int width>
ChannelGrid channel_grid(const TensorType& x, const TensorType& alpha) {
  const std::int64_t columns = alpha.shape.count();
  return {x.shape.count() / columns, columns, width, sizeof(T), 512, 4};
}

}  // namespace

Lowering lower_prelu(const LowerContext& context) {
  const TensorType &x = context.input(0), &alpha = context.input(1);
  return with_packs(x.dtype, alpha.shape.count(), [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    return own_kernel(context, [grid = channel_grid<T, width>(x, alpha)](const Buffers& p) {
      launch(prelu<T, width>, grid.blocks(), channel_threads, p.stream, grid, p.in<T>(0), p.in<float>(1), p.out<T>(0));
    });
  });
}

Lowering lower_prelu_grad(const LowerContext& context) {
  const TensorType &x = context.input(1), &alpha = context.input(2);
  const bool add = context.op.as<PReluGrad>().accumulate;
  return with_packs(x.dtype, alpha.shape.count(), [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const ChannelGrid grid = channel_grid<T, width>(x, alpha);
    const std::int64_t workspace = grid.stripes > 1 ? grid.stripes * grid.channels : 0;
    return own_kernel(
        context,
        [=, counters = make_counters(grid.tiles)](const Buffers& p) {
          launch(prelu_gradient<T, width>, grid.blocks(), channel_threads, p.stream, grid, p.in<T>(0), p.in<T>(1),
                 p.in<float>(2), add, p.workspace<float>(), counters.get(), p.out<T>(0), p.out<float>(1));
        },
        workspace * size_of(DType::float32));
  });
}

}  // namespace trainctl::cuda
