// Neighbouring values that a thread moves with one access, of up to 16 bytes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/backend/cuda/device/grid.h"

namespace trainctl::cuda {

template <class T, int width>
struct alignas(sizeof(T) * width) Pack {
  T values[width];
};

// The number of values that one access of 16 bytes moves.
template <class T>
inline constexpr int widest = 16 / static_cast<int>(sizeof(T));

// Whether the address can be accessed in packs of 16 bytes.
__host__ __device__ inline bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

// The pack at an address, which must be aligned to the size of the pack.
template <int width, class T>
__device__ inline const Pack<T, width>& pack_at(const T* address) {
  return *reinterpret_cast<const Pack<T, width>*>(address);
}
template <int width, class T>
__device__ inline Pack<T, width>& pack_at(T* address) {
  return *reinterpret_cast<Pack<T, width>*>(address);
}

// The number of packs as 32 bits, for kernels that divide indices: 32-bit divisions are faster.
inline std::uint32_t narrow(std::int64_t packs) {
  require(packs < std::int64_t{1} << 31, "an op has 2^31 or more packs of values");
  return static_cast<std::uint32_t>(packs);
}

// Calls make(T{}, std::integral_constant<int, width>{}) with the CUDA type of a floating-point dtype, and with the
// widest packs that divide rows of `values` values.
template <class Make>
auto with_packs(DType dtype, std::int64_t values, const Make& make) {
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    if (values % widest<T> == 0) return make(type, std::integral_constant<int, widest<T>>{});
    return make(type, std::integral_constant<int, 1>{});
  });
}

}  // namespace trainctl::cuda
