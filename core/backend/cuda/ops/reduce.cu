// Sums and extremes over dimensions, of x as [outer, count, inner] of which `count` is reduced.
//
// Threads reduce columns, or teams of threads rows. If there are too few of both, the values to reduce are first dealt
// to several columns, which a second launch reduces.
#include "core/graph/ops/reduce.h"

#include <bit>
#include <utility>

#include "core/backend/cuda/device/channels.h"
#include "core/backend/cuda/device/rows.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

constexpr std::int64_t few = 32;                  // values that a thread reduces alone, however few threads there are
constexpr std::int64_t enough_columns = 1 << 17;  // to fill any GPU with threads
constexpr std::int64_t enough_rows = 512;         // to fill any GPU with blocks
constexpr std::int64_t long_row = 1 << 15;        // values that one block may reduce alone

// y = scale * value, or y += scale * value.
struct Target {
  void* y = nullptr;
  DType dtype = DType::float32;
  float scale = 1;
  bool accumulate = false;

  __device__ void write(std::int64_t at, float value) const {
    switch (dtype) {
      case DType::bfloat16:
        return write(static_cast<__nv_bfloat16*>(y) + at, value);
      case DType::float16:
        return write(static_cast<__half*>(y) + at, value);
      default:
        return write(static_cast<float*>(y) + at, value);
    }
  }

 private:
  template <class T>
  __device__ void write(T* to, float value) const {
    *to = store<T>(accumulate ? load(*to) + scale * value : scale * value);
  }
};

// The sum, or the larger or smaller value; NaN if one of the two values is.
template <ReduceKind kind>
__device__ float combine(float a, float b) {
  if constexpr (kind == ReduceKind::sum) return a + b;
  if constexpr (kind == ReduceKind::maximum) return a > b || a != a ? a : b;
  return a < b || a != a ? a : b;
}

// The value that changes no result.
template <ReduceKind kind>
__device__ float nothing() {
  return kind == ReduceKind::sum ? 0 : kind == ReduceKind::maximum ? -INFINITY : INFINITY;
}

// Reads values one by one unless they are `packed`. Parameters may have any address.
template <int width, class T>
__device__ Pack<T, width> read_pack(const T* x, bool packed) {
  if (packed) return pack_at<width>(x);
  Pack<T, width> pack;
#pragma unroll
  for (int k = 0; k < width; ++k) pack.values[k] = x[k];
  return pack;
}

// Matrices whose `values` values are dealt to `columns` columns in turn.
struct Columns {
  std::int64_t matrices = 1, values = 1, columns = 1;
};

// y [matrices, columns]: each thread reduces `width` columns of a matrix.
template <ReduceKind kind, class T, int width>
__global__ void reduce_columns(Columns of, const T* x, bool packed, Target y) {
  const std::int64_t packs = of.columns / width;
  for (std::int64_t i = first_element(); i < of.matrices * packs; i += element_stride()) {
    const std::int64_t matrix = i / packs, column = (i - matrix * packs) * width;
    const T* const from = x + matrix * of.values;
    float results[width];
#pragma unroll
    for (int k = 0; k < width; ++k) results[k] = load(from[column + k]);
    const auto read = [&](std::int64_t at) { return read_pack<width>(from + at, packed); };
    each<8>(column + of.columns, of.values, of.columns, read, [&](std::int64_t, const Pack<T, width>& pack) {
#pragma unroll
      for (int k = 0; k < width; ++k) results[k] = combine<kind>(results[k], load(pack.values[k]));
    });
#pragma unroll
    for (int k = 0; k < width; ++k) y.write(matrix * of.columns + column + k, results[k]);
  }
}

// y [outer, inner]: each team reduces the values of one row, which are `inner` elements apart. A width above 1 needs
// inner == 1.
template <ReduceKind kind, class T, int width>
__global__ void reduce_rows(RowGrid grid, std::int64_t inner, const T* x, bool packed, Target y) {
  const RowTeam team(grid);
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    const std::int64_t outer = row / inner;
    const T* const from = x + outer * grid.values * inner + (row - outer * inner);
    float result = nothing<kind>();
    const auto read = [&](std::int64_t k) { return read_pack<width>(from + k * inner, packed); };
    each<4>(team.member() * width, grid.values, grid.team * width, read, [&](std::int64_t, const Pack<T, width>& pack) {
#pragma unroll
      for (int k = 0; k < width; ++k) result = combine<kind>(result, load(pack.values[k]));
    });
    result = team.join(result, [](float a, float b) { return combine<kind>(a, b); });
    if (team.leads()) y.write(row, result);
  }
}

struct ReducedView {
  std::int64_t outer = 1, count = 1, inner = 1;

  ReducedView(const Shape& x, const Reduce& def) {
    for (int axis = 0; axis < static_cast<int>(x.rank()); ++axis) {
      (axis < def.begin ? outer : axis < def.end ? count : inner) *= x[axis];
    }
    if (count == 1) inner *= std::exchange(outer, 1);
  }

  bool threads_reduce_alone() const { return count <= few || (inner > 1 && 2 * outer * inner > enough_columns); }

  // The number of columns to which the values of each result are dealt first, a power of two; 1 if one launch reduces
  // them.
  std::int64_t parts() const {
    if (threads_reduce_alone() || (inner == 1 && (count <= long_row || outer >= enough_rows))) return 1;
    const std::int64_t wanted = std::min(count / 16, enough_columns / (outer * inner));
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(wanted)));
  }
};

// Calls run(std::integral_constant<ReduceKind, kind>{}).
template <class Run>
void with_kind(ReduceKind kind, const Run& run) {
  using enum ReduceKind;
  if (kind == sum) return run(std::integral_constant<ReduceKind, sum>{});
  if (kind == maximum) return run(std::integral_constant<ReduceKind, maximum>{});
  run(std::integral_constant<ReduceKind, minimum>{});
}

template <class T>
void queue_columns(ReduceKind kind, const Columns& of, const T* x, const Target& y, cudaStream_t stream) {
  with_kind(kind, [&](auto constant) {
    constexpr ReduceKind reduction = decltype(constant)::value;
    const bool wide = of.columns % widest<T> == 0 && of.values % widest<T> == 0;
    const auto start = [&](auto width) {
      const int blocks = blocks_for(of.matrices * of.columns / width);
      launch(reduce_columns<reduction, T, width>, blocks, block_threads, stream, of, x, width == 1 || is_aligned(x), y);
    };
    wide ? start(std::integral_constant<int, widest<T>>{}) : start(std::integral_constant<int, 1>{});
  });
}

template <class T>
void queue_rows(ReduceKind kind, const ReducedView& view, const T* x, const Target& y, cudaStream_t stream) {
  with_kind(kind, [&](auto constant) {
    constexpr ReduceKind reduction = decltype(constant)::value;
    const bool wide = view.inner == 1 && view.count % widest<T> == 0;
    const RowGrid grid(view.outer * view.inner, view.count);
    const auto start = [&](auto width) {
      launch(reduce_rows<reduction, T, width>, grid.blocks, block_threads, stream, grid, view.inner, x,
             width == 1 || is_aligned(x), y);
    };
    wide ? start(std::integral_constant<int, widest<T>>{}) : start(std::integral_constant<int, 1>{});
  });
}

// Reduces the whole view in one launch.
template <class T>
void queue_view(ReduceKind kind, const ReducedView& view, const T* x, const Target& y, cudaStream_t stream) {
  if (!view.threads_reduce_alone()) return queue_rows(kind, view, x, y, stream);
  queue_columns(kind, {view.outer, view.count * view.inner, view.inner}, x, y, stream);
}

}  // namespace

Lowering lower_reduce(const LowerContext& context) {
  const auto& def = context.op.as<Reduce>();
  const ReducedView view(context.input(0).shape, def);
  const Target target{nullptr, def.dtype, def.scale, def.accumulate};
  const std::int64_t parts = view.parts();
  const std::int64_t workspace = parts > 1 ? view.outer * parts * view.inner * size_of(DType::float32) : 0;
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=, kind = def.reduction](const Buffers& p) {
          Target y = target;
          y.y = p.out<void>(0);
          const T* x = p.in<T>(0);
          if (parts == 1) return queue_view(kind, view, x, y, p.stream);
          auto* const partial = p.workspace<float>();
          queue_columns(kind, {view.outer, view.count * view.inner, parts * view.inner}, x, {partial}, p.stream);
          ReducedView joined = view;
          joined.count = parts;
          queue_view<float>(kind, joined, partial, y, p.stream);
        },
        workspace);
  });
}

}  // namespace trainctl::cuda
