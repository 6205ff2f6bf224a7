// Layer normalisation over the last dimension: teams process rows for y and dx, blocks sum columns for dgamma and
// dbeta.
#include "core/graph/ops/normalization/layer_norm.h"

#include "core/backend/cuda/device/channels.h"
#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/device/rows.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// The summands of x, if x is a sum that the kernel writes; else null. x may be one of them.
template <class T>
struct Summands {
  const T *a = nullptr, *b = nullptr;
};

// gamma and beta may be null.
template <class T>
__global__ void normalise_rows(RowGrid grid, float epsilon, bool centered, Summands<T> of_x, T* x, const float* gamma,
                               const float* beta, T* y, float* mean, float* rstd) {
  const RowTeam team(grid);
  const auto count = static_cast<float>(grid.values);
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    T* const xs = x + row * grid.values;
    if (of_x.a != nullptr) {  // each thread reads what it writes here
      const T* other = of_x.b + row * grid.values;
      team.map(of_x.a + row * grid.values, xs, [&](int k, float value) { return value + load(other[k]); });
    }
    float sum = 0, squares = 0, average = 0;
    if (centered) {
      team.each(xs, [&](int, float value) { sum += value; });
      average = team.sum(sum) / count;
    }
    team.each(xs, [&](int, float value) { squares += (value - average) * (value - average); });
    const float scale = rsqrtf(team.sum(squares) / count + epsilon);
    team.map(xs, y + row * grid.values, [&](int k, float value) {
      const float normal = (value - average) * scale;
      return (gamma != nullptr ? gamma[k] : 1.0f) * normal + (beta != nullptr ? beta[k] : 0.0f);
    });
    if (team.leads()) {
      mean[row] = average;
      rstd[row] = scale;
    }
  }
}

template <class T>
__global__ void layer_gradient_by_input(RowGrid grid, bool centered, NormBackward<T> b) {
  const RowTeam team(grid);
  const auto count = static_cast<float>(grid.values);
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    const T *dy = b.dy + row * grid.values, *x = b.x + row * grid.values;
    const T* other = b.other != nullptr ? b.other + row * grid.values : nullptr;
    const float mean = b.mean[row], rstd = b.rstd[row];
    const auto slope = [&](int k, float value) { return value * (b.gamma != nullptr ? b.gamma[k] : 1.0f); };
    float sum = 0, product = 0;
    team.each(dy, [&](int k, float value) {
      sum += slope(k, value);
      product += slope(k, value) * (load(x[k]) - mean);
    });
    const float average = centered ? team.sum(sum) / count : 0.0f, along = team.sum(product) * rstd / count;
    team.map(dy, b.dx + row * grid.values, [&](int k, float value) {
      const float own = rstd * (slope(k, value) - average - (load(x[k]) - mean) * rstd * along);
      return other != nullptr ? own + load(other[k]) : own;
    });
  }
}

// Computes dgamma and dbeta: blocks sum stripes of rows, and the last block of each tile of columns adds the stripes in
// order. `partial` [quantity][stripe][column] is used if there are several stripes.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads)
    layer_gradient_by_parameters(ChannelGrid grid, NormBackward<T> b, bool accumulate, float* partial,
                                 unsigned* counters) {
  const ChannelThread at(grid);
  float values[2][width] = {};
  if (at.inside) {
    for (std::int64_t row = at.first; row < grid.rows; row += at.step) {
      const std::int64_t offset = row * grid.channels + at.channel;
      const Pack<T, width> dy = pack_at<width>(b.dy + offset), x = pack_at<width>(b.x + offset);
      const float mean = b.mean[row], rstd = b.rstd[row];
#pragma unroll
      for (int k = 0; k < width; ++k) {
        values[0][k] += load(dy.values[k]) * (load(x.values[k]) - mean) * rstd;
        values[1][k] += load(dy.values[k]);
      }
    }
  }
  float sums[2];
  sum_lanes(values, grid.tile, sums);
  const std::int64_t column = own_channel(grid), stride = grid.stripes * grid.channels;
  if (grid.stripes > 1) {
    if (column >= 0) {
      partial[blockIdx.y * grid.channels + column] = sums[0];
      partial[stride + blockIdx.y * grid.channels + column] = sums[1];
    }
    if (!last_block(counters + blockIdx.x, gridDim.y)) return;
    float joined[2][1] = {};
    if (const std::int64_t own = joined_channel(grid); own >= 0) {
      for (std::int64_t stripe = joined_first(grid); stripe < grid.stripes; stripe += joined_step(grid)) {
        joined[0][0] += fresh(partial + stripe * grid.channels + own);
        joined[1][0] += fresh(partial + stride + stripe * grid.channels + own);
      }
    }
    sum_lanes(joined, grid.span(), sums);
  }
  if (column < 0) return;
  if (b.dgamma != nullptr) b.dgamma[column] = accumulate ? b.dgamma[column] + sums[0] : sums[0];
  if (b.dbeta != nullptr) b.dbeta[column] = accumulate ? b.dbeta[column] + sums[1] : sums[1];
}

RowGrid rows_of(const Shape& shape) { return {shape.count() / shape.back(), shape.back()}; }

}  // namespace

Lowering lower_layer_norm(const LowerContext& context) {
  const RowGrid grid = rows_of(context.input(0).shape);
  return with_type(context.input(0).dtype, [&, a = context.op.as<LayerNorm>().a](auto type) {
    using T = decltype(type);
    return own_kernel(context, [grid, a](const Buffers& p) {
      const std::size_t next = a.residual ? 2 : 1;
      const float* gamma = a.scale ? p.in<float>(next) : nullptr;
      const float* beta = a.center ? p.in<float>(a.scale ? next + 1 : next) : nullptr;
      Summands<T> of_x;
      if (a.residual) of_x = {p.in<T>(0), p.in<T>(1)};
      T* const x = a.residual ? p.out<T>(3) : const_cast<T*>(p.in<T>(0));  // read only, unless it is a sum
      launch(normalise_rows<T>, grid.blocks, block_threads, p.stream, grid, a.epsilon, a.centered, of_x, x, gamma, beta,
             p.out<T>(0), p.out<float>(1), p.out<float>(2));
    });
  });
}

Lowering lower_layer_norm_grad(const LowerContext& context) {
  const auto& def = context.op.as<LayerNormGrad>();
  const TensorType& x = context.input(1);
  const RowGrid rows = rows_of(x.shape);
  const int other = def.adds ? def.other() : -1;
  return with_packs(x.dtype, x.shape.back(), [&, a = def.a, accumulate = def.accumulate](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const ChannelGrid columns(rows.rows, rows.values, width, sizeof(T), 256, 8);
    const std::int64_t workspace = columns.stripes > 1 ? 2 * columns.stripes * columns.channels : 0;
    return own_kernel(
        context,
        [=, counters = make_counters(columns.tiles)](const Buffers& p) {
          NormBackward<T> b(p, a);
          if (other >= 0) b.other = p.in<T>(static_cast<std::size_t>(other));
          launch(layer_gradient_by_input<T>, rows.blocks, block_threads, p.stream, rows, a.centered, b);
          if (b.dgamma == nullptr && b.dbeta == nullptr) return;
          launch(layer_gradient_by_parameters<T, width>, columns.blocks(), channel_threads, p.stream, columns, b,
                 accumulate, p.workspace<float>(), counters.get());
        },
        workspace * size_of(DType::float32));
  });
}

}  // namespace trainctl::cuda
