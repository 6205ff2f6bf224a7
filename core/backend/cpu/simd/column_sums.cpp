// Sums over the rows of a matrix.
#include "core/backend/cpu/simd/column_sums.h"

#include "core/backend/cpu/simd/channels.h"

namespace trainctl::cpu {
namespace {

template <class T>
void sum(const ChannelShape& shape, const T* x, float* partials) {
  const std::int64_t columns = shape.columns();
  channel_sums(
      shape,
      [=](std::int64_t) TRAINCTL_INLINE {
        return [=](std::int64_t i, std::int64_t) TRAINCTL_INLINE { return Pair{load(x[i]), 0.0f}; };
      },
      [=](std::int64_t chunk, std::int64_t column, std::int64_t width, const float* sums, const float*)
          TRAINCTL_INLINE { std::copy_n(sums, width, partials + chunk * columns + column); });
}

// The bytes of the totals, which are stored before the partial sums.
std::int64_t total_bytes(std::int64_t columns) { return columns * static_cast<std::int64_t>(sizeof(double)); }

}  // namespace

std::int64_t column_sums_workspace(std::int64_t rows, std::int64_t columns) {
  return total_bytes(columns) + ChannelShape(rows, columns).partials(1) * size_of(DType::float32);
}

void column_sums(DType dtype, const void* x, std::int64_t rows, std::int64_t columns, bool accumulate, float* sums,
                 void* workspace) {
  const ChannelShape shape(rows, columns);
  auto* totals = static_cast<double*>(workspace);
  auto* partials = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + total_bytes(columns));
  if (dtype == DType::float32) {
    sum(shape, static_cast<const float*>(x), partials);
  } else {
    sum(shape, static_cast<const Bf16*>(x), partials);
  }
  join_channel_sums<1>(shape, partials, totals);
  for (std::int64_t c = 0; c < columns; ++c) {
    sums[c] = static_cast<float>(accumulate ? static_cast<double>(sums[c]) + totals[c] : totals[c]);
  }
}

}  // namespace trainctl::cpu
