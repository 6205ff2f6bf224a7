// Batch normalisation, ReLU and max pooling as one op, forward and backward. Unlike the separate ops, this op neither
// writes nor reads the normalised images and their gradient. The forward pass computes the same bits as the separate
// ops; the backward pass may add sums in another order.
#include "core/graph/ops/normalization/batch_norm_pool.h"

#include "core/backend/cuda/choice/candidates.h"
#include "core/backend/cuda/choice/op_timer.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/images/pooling.h"
#include "core/backend/cuda/ops/normalization/batch_norm_gradient.h"
#include "core/backend/decomposed.h"

namespace trainctl::cuda {
namespace {

// Computes each window's maxima of relu((x - mean) * scale + beta), and the winners: the positions of the maxima in the
// window. Values are rounded to T before they are compared. The rows of the grid are the pixels of the output.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    normalise_and_pool(ChannelGrid grid, PoolShape s, Normalisation n, const T* __restrict__ x, T* __restrict__ y,
                       std::uint8_t* __restrict__ winners) {
  const ChannelThread at(grid);
  if (!at.inside) return;
  const Factors<width> factors(n, at.channel);
  const auto read = [&](std::int64_t offset) {
    Pack<T, width> pixel = pack_at<width>(x + offset);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float value = factors.normalised(load(pixel.values[k]), k);
      pixel.values[k] = store<T>(value < 0 ? 0.0f : value);
    }
    return pixel;
  };
  for (std::int64_t row = at.first; row < grid.rows; row += at.step) {
    const std::int64_t offset = row * grid.channels + at.channel;
    Maxima<width>(s, output_spot(s, static_cast<std::uint32_t>(offset / width), width), read).write(offset, y, winners);
  }
}

// The source that computes dy: it gathers the gradient of the normalised images from the gradient of the pooled images.
struct PooledGradient {
  PoolShape s;
  const std::uint8_t* winners;

  template <int width, class T>
  __device__ Pack<T, width> at(const T* dy, std::int64_t offset) const {
    return gathered_by_winners<width>(s, dy, winners, static_cast<std::uint32_t>(offset / width));
  }
};

template <class T, int width, int sums_width>
Lowering fused_forward(const LowerContext& context) {
  const auto& def = context.op.as<BatchNormPool>();
  const Shape &x = context.input(0).shape, &y = context.output(0).shape;
  const Grids grids = Grids::of<T>(x, context.device, sums_width, width);
  const ChannelGrid outputs = Grids::of<T>(y, context.device, sums_width, width).elements;
  const PoolShape s(def.window, x, width);
  return own_kernel(
      context,
      [=, a = def.a, counters = make_counters(grids.sums.tiles)](const Buffers& p) {
        std::size_t next = 1;
        float *mean = p.out<float>(1), *variance = p.out<float>(2);
        Normalisation n{mean, variance, nullptr, nullptr, a.epsilon, true};
        if (a.scale) n.gamma = p.in<float>(next++);
        if (a.center) n.beta = p.in<float>(next);
        launch(statistics<T, sums_width>, grids.sums.blocks(), channel_threads, p.stream, grids.sums, p.in<T>(0),
               p.workspace<float2>(), counters.get(), mean, variance);
        launch(normalise_and_pool<T, width>, outputs.blocks(), channel_threads, p.stream, outputs, s, n, p.in<T>(0),
               p.out<T>(0), p.out<std::uint8_t>(3));
      },
      grids.partials_bytes());
}

template <class T, int width>
Lowering fused_backward(const LowerContext& context) {
  const auto& def = context.op.as<BatchNormPoolGrad>();
  const Grids grids = Grids::of<T>(def.input, context.device, width, width);
  const PoolShape s(def.window, def.input, width);
  return own_kernel(
      context,
      [=, a = def.a, add = def.accumulate, counters = make_counters(grids.sums.tiles)](const Buffers& p) {
        std::size_t in = 3, out = 1;
        Backward<T> b{};
        b.dy = p.in<T>(0), b.x = p.in<T>(2), b.dx = p.out<T>(0), b.accumulate = add;
        Normalisation n{nullptr, nullptr, nullptr, nullptr, a.epsilon, true};
        if (a.scale) n.gamma = p.in<float>(in++);
        if (a.center) n.beta = p.in<float>(in++);
        n.mean = p.in<float>(in++);
        n.variance = p.in<float>(in);
        if (a.scale) b.dgamma = p.out<float>(out++);
        if (a.center) b.dbeta = p.out<float>(out);
        const PooledGradient source{s, p.in<std::uint8_t>(1)};
        auto* means = p.workspace<float2>();
        launch(gradient_sums<T, width, ReluMask::x, PooledGradient>, grids.sums.blocks(), channel_threads, p.stream,
               grids.sums, n, b, source, p.workspace<float2>(grids.means_bytes()), counters.get(), means);
        launch(gradient_by_input<T, width, ReluMask::x, PooledGradient>, grids.elements.blocks(), channel_threads,
               p.stream, grids.elements, n, b, source, means);
      },
      grids.means_bytes() + grids.partials_bytes());
}

Lowering lower_separately(const LowerContext& context) {
  return lower_decomposed(context, context.op.def->decomposition(), [&](const OpContext& part) {
    return lower_op({part, context.device, context.plans});
  });
}

// A lowering, and the name under which its choice is recorded.
struct Alternative {
  std::string name;
  std::function<Lowering()> lower;
};

// Lowers the op by the recorded alternative. If none is recorded, chooses the fastest alternative or, if x is too small
// to be worth timing, the first one.
Lowering fastest(const LowerContext& context, const Shape& x, const std::vector<Alternative>& alternatives) {
  constexpr std::int64_t min_timed_elements = 1 << 20;  // number of elements below which alternatives are not timed
  const std::string key = choice_key(context);
  std::vector<std::string> names;
  for (const Alternative& alternative : alternatives) names.push_back(alternative.name);
  if (x.count() < min_timed_elements && !context.choices.find(key)) context.choices.record(key, names.front());
  const std::size_t chosen = choose(context, key, context.label(), names,
                                    [&](std::size_t i) { return measure_op(context, alternatives[i].lower()); });
  Lowering lowering = alternatives[chosen].lower();
  lowering.implementation += ", " + alternatives[chosen].name;
  return lowering;
}

}  // namespace

Lowering lower_batch_norm_pool(const LowerContext& context) {
  const TensorType& x = context.input(0);
  const auto fused = [&] {
    return with_packs(x.dtype, x.shape.back(), [&](auto type, auto pack) {
      constexpr int width = decltype(pack)::value;
      return fused_forward<decltype(type), narrower<width>, width>(context);
    });
  };
  return fastest(context, x.shape, {{"fused", fused}, {"apart", [&] { return lower_separately(context); }}});
}

Lowering lower_batch_norm_pool_grad(const LowerContext& context) {
  const TensorType& x = context.input(2);
  std::vector<Alternative> alternatives;
  for (const int width : gradient_widths(x)) {
    alternatives.push_back({"fused, " + name_of_width(width), [&context, &x, width] {
                              return with_gradient_width(x.dtype, width, [&](auto type, auto pack) {
                                return fused_backward<decltype(type), decltype(pack)::value>(context);
                              });
                            }});
  }
  alternatives.push_back({"apart", [&] { return lower_separately(context); }});
  return fastest(context, x.shape, alternatives);
}

}  // namespace trainctl::cuda
