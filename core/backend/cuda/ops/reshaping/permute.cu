// Permutes dimensions: each thread finds the offset in x of each pack of y.
#include "core/graph/ops/reshaping/permute.h"

#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

constexpr int max_loops = 8;

struct Loops {
  int count = 0;
  std::uint32_t sizes[max_loops];
  std::int64_t strides[max_loops];  // strides of x, in packs
};

template <class T, int width>
__global__ void permute(const T* x, T* y, std::uint32_t packs, Loops loops) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < packs; i += element_stride()) {
    std::int64_t from = 0;
    std::uint32_t rest = i;
    for (int k = loops.count - 1; k >= 0; --k) {
      from += rest % loops.sizes[k] * loops.strides[k];
      rest /= loops.sizes[k];
    }
    pack_at<width>(y + std::int64_t{i} * width) = pack_at<width>(x + from * width);
  }
}

// The loops over packs of `width` elements: the innermost loop is over neighbours in x if packs have several elements.
Loops in_packs(const PermutedLoops& loops, int width) {
  require(loops.sizes.size() <= max_loops, "a permutation has more than 8 dimensions");
  Loops result;
  result.count = static_cast<int>(loops.sizes.size());
  for (int k = 0; k < result.count; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const bool innermost = k + 1 == result.count;
    result.sizes[k] = narrow(innermost ? loops.sizes[at] / width : loops.sizes[at]);
    result.strides[k] = innermost ? loops.strides[at] : loops.strides[at] / width;
  }
  return result;
}

}  // namespace

Lowering lower_permute(const LowerContext& context) {
  const PermutedLoops loops = loops_of(context.input(0).shape, context.op.as<Permute>().order);
  const std::int64_t count = context.output(0).shape.count();
  const std::int64_t together = loops.strides.back() == 1 ? loops.sizes.back() : 1;  // neighbours in x and in y
  return with_packs(context.input(0).dtype, together, [&](auto type, auto packed) {
    using T = decltype(type);
    constexpr int width = decltype(packed)::value;
    const std::uint32_t packs = narrow(count / width);
    return own_kernel(context, [packs, of = in_packs(loops, width)](const Buffers& p) {
      launch(permute<T, width>, blocks_for(packs), block_threads, p.stream, p.in<T>(0), p.out<T>(0), packs, of);
    });
  });
}

}  // namespace trainctl::cuda
