// Losses with their gradients, one pass over the predictions' rows: sums over samples.
#include "core/graph/ops/losses.h"

#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/device/rows.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// What a loss is taken of. Targets are smoothed as in Keras: t = target * scale + shift.
struct LossSetting {
  LossKind kind;
  float scale, shift;
  bool accumulate;
};

// The targets of a sample: a label, or a row of values.
struct Target {
  const float* row;
  int label;
  float scale, shift;

  __device__ float operator()(int k) const {
    const float target = row != nullptr ? row[k] : k == label ? 1.0f : 0.0f;
    return target * scale + shift;
  }
};

// Cross-entropy of the softmax of a row of logits: log(sum e^x) * sum(t) - sum(t x). dx = weight * (softmax sum(t) -
// t).
template <class T>
__device__ float cross_entropy(const RowTeam& team, const T* x, const Target& target, float weight, T* dx) {
  float top = -INFINITY, sum = 0, total = 0, product = 0;
  team.each(x, [&](int, float value) { top = fmaxf(top, value); });
  top = team.largest(top);
  team.each(x, [&](int k, float value) {
    const float t = target(k);
    sum += expf(value - top);
    total += t;
    product += t * (value - top);
  });
  sum = team.sum(sum);
  total = team.sum(total);
  product = team.sum(product);
  if (dx != nullptr) {
    const float scale = total / sum;
    team.map(x, dx, [&](int k, float value) { return weight * (expf(value - top) * scale - target(k)); });
  }
  return logf(sum) * total - product;
}

template <class T>
__device__ float binary(const RowTeam& team, const T* x, int values, const Target& target, float weight, T* dx) {
  const auto count = static_cast<float>(values);
  float loss = 0;
  team.each(x, [&](int k, float value) {
    const float positive = value < 0 ? 0.0f : value;  // NaN stays
    loss += positive - value * target(k) + log1pf(expf(-fabsf(value)));
  });
  if (dx != nullptr) {
    team.map(x, dx, [&](int k, float value) { return weight * (1.0f / (1.0f + expf(-value)) - target(k)) / count; });
  }
  return team.sum(loss) / count;
}

template <class T>
__device__ float squared(const RowTeam& team, const T* x, int values, const Target& target, float weight, T* dx) {
  const auto count = static_cast<float>(values);
  float loss = 0;
  team.each(x, [&](int k, float value) { loss += (value - target.row[k]) * (value - target.row[k]); });
  if (dx != nullptr) {
    const float scale = 2.0f * weight / count;
    team.map(x, dx, [&](int k, float value) { return scale * (value - target.row[k]); });
  }
  return team.sum(loss) / count;
}

// dx is null in evaluation. A skipped sample, of weight 0, may hold anything; a label that is no class makes the loss
// NaN.
template <class T>
__global__ void losses(RowGrid grid, LossSetting setting, const T* x, const void* targets, const float* weights, T* dx,
                       float* of_samples, unsigned* counter, float* sum, float* count) {
  const RowTeam team(grid);
  const bool sparse = setting.kind == LossKind::sparse_categorical_crossentropy;
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    const T* xs = x + row * grid.values;
    T* dxs = dx != nullptr ? dx + row * grid.values : nullptr;
    float weight = weights[row], loss = 0;
    if (weight == 0) {
      if (dxs != nullptr) team.fill(dxs, [](int) { return 0.0f; });
    } else {
      Target target{nullptr, 0, setting.scale, setting.shift};
      if (sparse) {
        target.label = static_cast<const std::int32_t*>(targets)[row];
        if (target.label < 0 || target.label >= grid.values) weight = NAN;
      } else {
        target.row = static_cast<const float*>(targets) + row * grid.values;
      }
      switch (setting.kind) {
        case LossKind::sparse_categorical_crossentropy:
        case LossKind::categorical_crossentropy:
          loss = weight * cross_entropy(team, xs, target, weight, dxs);
          break;
        case LossKind::binary_crossentropy:
          loss = weight * binary(team, xs, grid.values, target, weight, dxs);
          break;
        case LossKind::mean_squared_error:
          loss = weight * squared(team, xs, grid.values, target, weight, dxs);
          break;
      }
    }
    if (team.leads()) of_samples[row] = loss;
  }
  if (!last_block(counter, gridDim.x)) return;
  sum_in_block(of_samples, grid.rows, setting.accumulate, sum);
  sum_in_block(weights, grid.rows, setting.accumulate, count);
}

}  // namespace

Lowering lower_loss(const LowerContext& context) {
  const auto& def = context.op.as<Loss>();
  const Shape& shape = context.input(0).shape;
  const RowGrid grid(shape[0], shape.count() / std::max<std::int64_t>(shape[0], 1));
  const float smoothing = def.label_smoothing;
  const float shift =
      def.loss == LossKind::binary_crossentropy ? 0.5f * smoothing : smoothing / static_cast<float>(grid.values);
  const LossSetting setting{def.loss, 1.0f - smoothing, shift, def.accumulate};
  return with_type(context.input(0).dtype, [&, training = def.training](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=, counter = make_counters(1)](const Places& p) {
          launch(losses<T>, grid.blocks, block_threads, p.stream, grid, setting, p.in<T>(0), p.in<void>(1),
                 p.in<float>(2), training ? p.out<T>(2) : nullptr, p.workspace<float>(), counter.get(), p.out<float>(0),
                 p.out<float>(1));
        },
        grid.rows * size_of(DType::float32));
  });
}

}  // namespace trainctl::cuda
