// Softmax over the last dimension, and its gradient.
#include "core/backend/cuda/device/rows.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// y may be x.
template <class T>
__global__ void softmax(RowGrid grid, const T* x, T* y) {
  const RowTeam team(grid);
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    const T* xs = x + row * grid.values;
    float top = -INFINITY, sum = 0;
    team.each(xs, [&](int, float value) { top = fmaxf(top, value); });
    top = team.largest(top);
    team.each(xs, [&](int, float value) { sum += expf(value - top); });
    const float scale = 1.0f / team.sum(sum);
    team.map(xs, y + row * grid.values, [&](int, float value) { return expf(value - top) * scale; });
  }
}

// dx = y * (dy - sum(dy * y)); dx may be dy.
template <class T>
__global__ void softmax_gradient(RowGrid grid, const T* dy, const T* y, T* dx) {
  const RowTeam team(grid);
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    const T *dys = dy + row * grid.values, *ys = y + row * grid.values;
    float sum = 0;
    team.each(dys, [&](int k, float value) { sum += value * load(ys[k]); });
    sum = team.sum(sum);
    team.map(dys, dx + row * grid.values, [&](int k, float value) { return load(ys[k]) * (value - sum); });
  }
}

RowGrid row_grid(const Shape& shape) { return {shape.count() / shape.back(), shape.back()}; }

}  // namespace

Lowering lower_softmax(const LowerContext& context) {
  const RowGrid grid = row_grid(context.input(0).shape);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [grid](const Buffers& p) {
      launch(softmax<T>, grid.blocks, block_threads, p.stream, grid, p.in<T>(0), p.out<T>(0));
    });
  });
}

Lowering lower_softmax_grad(const LowerContext& context) {
  const RowGrid grid = row_grid(context.input(0).shape);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [grid](const Buffers& p) {
      launch(softmax_gradient<T>, grid.blocks, block_threads, p.stream, grid, p.in<T>(0), p.in<T>(1), p.out<T>(0));
    });
  });
}

}  // namespace trainctl::cuda
