// Parametric ReLU and its gradients. The tensor is a matrix in which each column has an alpha; rows are positions or
// samples.
#include "core/graph/ops/elementwise/prelu.h"

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/channels.h"

namespace trainctl::cpu {
namespace {

// The matrix in blocks of a chunk of rows by up to `block` columns, so that a block's sums stay in the L1 cache.
struct Blocks {
  static constexpr std::int64_t block = 1024;
  ChannelShape shape;

  Blocks(const TensorType& x, const TensorType& alpha)
      : shape(x.shape.count() / alpha.shape.count(), alpha.shape.count()) {}
  // The number of blocks along a row.
  std::int64_t blocks_per_row() const { return (shape.columns() + block - 1) / block; }

  // Calls body(chunk, first column, end column) for all blocks, in parallel. The body must be inlinable.
  template <class Body>
  void each(const Body& body) const {
    const std::int64_t values = shape.rows_of(0) * std::min(block, shape.columns());
    parallel_ranges(shape.chunks * blocks_per_row(), std::max<std::int64_t>(1, element_grain / values),
                    [&](std::int64_t begin, std::int64_t end) {
                      simd([&]() TRAINCTL_INLINE {
                        for (std::int64_t i = begin; i < end; ++i) {
                          const std::int64_t first = i % blocks_per_row() * block;
                          body(i / blocks_per_row(), first, std::min(first + block, shape.columns()));
                        }
                      });
                    });
  }
};

// The alpha of each column.
class Slopes {
 public:
  Slopes(const ChannelShape& shape, const float* alpha) : alpha_(alpha), folded_(shape.fold > 1) {
    for (std::int64_t i = 0; folded_ && i < shape.columns(); ++i) repeated_[i] = alpha[i % shape.channels];
  }
  const float* of_columns() const { return folded_ ? repeated_ : alpha_; }

 private:
  const float* alpha_;
  bool folded_;
  float repeated_[widest_tile];  // a folded row has at most widest_tile columns
};

}  // namespace

Lowering lower_prelu(const LowerContext& context) {
  const Blocks blocks(context.input(0), context.input(1));
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* x = buffers.in<T>(0);
      T* y = buffers.out<T>(0);
      const ChannelShape& shape = blocks.shape;
      const Slopes slopes(shape, buffers.in<float>(1));
      blocks.each([=, &shape, alpha = slopes.of_columns()](std::int64_t chunk, std::int64_t begin, std::int64_t end)
                      TRAINCTL_INLINE {
                        for (std::int64_t row = chunk * shape.chunk_rows, i = 0; i < shape.rows_of(chunk); ++i, ++row) {
                          const T* xs = x + row * shape.columns();
                          T* ys = y + row * shape.columns();
#pragma omp simd
                          for (std::int64_t c = begin; c < end; ++c) {
                            const float value = load(xs[c]);
                            ys[c] = store<T>(value > 0 ? value : value * alpha[c]);
                          }
                        }
                      });
    });
  });
}

Lowering lower_prelu_grad(const LowerContext& context) {
  const Blocks blocks(context.input(1), context.input(2));
  const bool accumulate = context.op.as<PReluGrad>().accumulate;
  return with_type(context.input(1).dtype, [&](auto type) {
    using T = decltype(type);
    const auto run = [=](const Buffers& buffers) {
      const T *dy = buffers.in<T>(0), *x = buffers.in<T>(1);
      T* dx = buffers.out<T>(0);
      float *dalpha = buffers.out<float>(1), *partials = buffers.workspace<float>();
      const ChannelShape& shape = blocks.shape;
      const Slopes slopes(shape, buffers.in<float>(2));
      blocks.each([=, &shape, alpha = slopes.of_columns()](std::int64_t chunk, std::int64_t begin, std::int64_t end)
                      TRAINCTL_INLINE {
                        float* sums = partials + chunk * shape.columns();
                        std::fill(sums + begin, sums + end, 0.0f);
                        for (std::int64_t row = chunk * shape.chunk_rows, i = 0; i < shape.rows_of(chunk); ++i, ++row) {
                          const std::int64_t offset = row * shape.columns();
                          const T *dys = dy + offset, *xs = x + offset;
                          T* dxs = dx + offset;
#pragma omp simd
                          for (std::int64_t c = begin; c < end; ++c) {
                            const float value = load(xs[c]), gradient = load(dys[c]);
                            dxs[c] = store<T>(value > 0 ? gradient : gradient * alpha[c]);
                            sums[c] += value > 0 ? 0.0f : gradient * value;
                          }
                        }
                      });
      const std::int64_t terms = shape.chunks * shape.fold;  // terms of a channel; partials are [chunk][fold][channel]
      const std::int64_t grain = std::max<std::int64_t>(1, element_grain / terms);
      parallel_ranges(shape.channels, grain, [=, &shape](std::int64_t begin, std::int64_t end) {
        for (std::int64_t c = begin; c < end; ++c) {
          double sum = accumulate ? dalpha[c] : 0.0;
          for (std::int64_t term = 0; term < terms; ++term) sum += partials[term * shape.channels + c];
          dalpha[c] = static_cast<float>(sum);
        }
      });
    };
    return own_kernel(context, run, blocks.shape.partials(1) * size_of(DType::float32));
  });
}

}  // namespace trainctl::cpu
