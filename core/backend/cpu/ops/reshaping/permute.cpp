// Permutations of dimensions. The output y is written row by row, in the order of its memory.
#include "core/graph/ops/reshaping/permute.h"

#include <cstring>

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {
namespace {

// The number of columns of y that are written together if neighbours in y are far apart in x: a cache line of float32.
constexpr std::int64_t tile = 16;

// The offset in x of the first value of a row of y; a row is the innermost loop.
std::int64_t start_of(const PermutedLoops& loops, std::int64_t row) {
  std::int64_t start = 0;
  for (std::size_t k = loops.sizes.size() - 1; k-- > 0;) {
    start += row % loops.sizes[k] * loops.strides[k];
    row /= loops.sizes[k];
  }
  return start;
}

// Writes rows [begin, end) of y. Copies `tile` columns of all rows of an outer loop at a time, so that all values of a
// cache line of x are used while the line is in the cache.
template <class T>
void permute_rows(const PermutedLoops& loops, const T* x, T* y, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = loops.sizes.back(), stride = loops.strides.back();
  const std::int64_t block = loops.sizes.size() > 1 ? loops.sizes[loops.sizes.size() - 2] : 1;
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t last = std::min(end, (row / block + 1) * block);
    if (stride == 1) {
      for (; row < last; ++row) {
        std::memcpy(y + row * width, x + start_of(loops, row), static_cast<std::size_t>(width) * sizeof(T));
      }
      continue;
    }
    const std::int64_t first = start_of(loops, row), step = block > 1 ? loops.strides[loops.strides.size() - 2] : 0;
    for (std::int64_t column = 0; column < width; column += tile) {
      const std::int64_t columns = std::min(tile, width - column);
      for (std::int64_t r = row; r < last; ++r) {
        const T* const from = x + first + (r - row) * step + column * stride;
        T* const to = y + r * width + column;
        for (std::int64_t c = 0; c < columns; ++c) to[c] = from[c * stride];
      }
    }
    row = last;
  }
}

}  // namespace

Lowering lower_permute(const LowerContext& context) {
  const PermutedLoops loops = loops_of(context.input(0).shape, context.op.as<Permute>().order);
  const std::int64_t width = loops.sizes.back(), rows = context.output(0).shape.count() / width;
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* x = buffers.in<T>(0);
      T* y = buffers.out<T>(0);
      parallel_ranges(rows, std::max<std::int64_t>(1, element_grain / width),
                      [&](std::int64_t begin, std::int64_t end) { permute_rows(loops, x, y, begin, end); });
    });
  });
}

}  // namespace trainctl::cpu
