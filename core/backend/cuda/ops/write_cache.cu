// Copies the rows of new positions into a cache.
#include "core/graph/ops/write_cache.h"

#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// The numbers of packs of x, of a row, and the numbers of rows of a sample in x and in the cache.
struct CacheRows {
  std::uint32_t packs, row, steps, positions;
};

template <int width, class T>
__global__ void write_rows(CacheRows sizes, const T* x, const std::int32_t* starts, T* cache) {
  for (std::int64_t i = first_element(); i < sizes.packs; i += element_stride()) {
    const auto pack = static_cast<std::uint32_t>(i);
    const std::uint32_t row = pack / sizes.row, sample = row / sizes.steps;
    const std::uint32_t position = static_cast<std::uint32_t>(starts[sample]) + row % sizes.steps;
    if (position >= sizes.positions) continue;
    const std::int64_t to = (std::int64_t{sample} * sizes.positions + position) * sizes.row + pack % sizes.row;
    pack_at<width>(cache + to * width) = pack_at<width>(x + i * width);
  }
}

}  // namespace

Lowering lower_write_cache(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  const std::int64_t positions = context.op.as<WriteCache>().positions;
  return with_packs(context.input(0).dtype, x[2], [&](auto type, auto packed) {
    using T = decltype(type);
    constexpr int width = decltype(packed)::value;
    const CacheRows sizes{narrow(x.count() / width), narrow(x[2] / width), narrow(x[1]), narrow(positions)};
    return own_kernel(context, [=](const Buffers& p) {
      launch(write_rows<width, T>, blocks_for(sizes.packs), block_threads, p.stream, sizes, p.in<T>(0),
             p.in<std::int32_t>(1), p.out<T>(0));
    });
  });
}

}  // namespace trainctl::cuda
