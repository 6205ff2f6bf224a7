// The beginning of every source that is compiled at run time: types of values in memory, accesses of neighbouring
// values, and the functions that CUDA C++ lacks.
#pragma once

#include <string_view>

namespace trainctl::cuda {

// It needs no header files, which machines without a CUDA toolkit lack. Of the names that only GPUs know it uses
// __device__, __uint_as_float(), __float_as_uint(), rsqrtf() and the float16 conversions below, which NVRTC compiles.
inline constexpr std::string_view source_prelude = R"(
struct bfloat16 { unsigned short bits; };
struct float16 { unsigned short bits; };

#ifdef __CUDACC_RTC__
__device__ inline float float_of(float16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ inline float16 float16_of(float x) {
  float16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
#endif
__device__ inline float float_of(float x) { return x; }
__device__ inline float float_of(int x) { return static_cast<float>(x); }
__device__ inline float float_of(unsigned char x) { return static_cast<float>(x); }
__device__ inline float float_of(bfloat16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }

// Round to the nearest value, to the even one in the middle.
__device__ inline void set(float& to, float x) { to = x; }
__device__ inline void set(float16& to, float x) { to = float16_of(x); }
__device__ inline void set(bfloat16& to, float x) {
  const unsigned bits = __float_as_uint(x);
  to.bits = x != x ? 0x7fff : static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Neighbouring values, which are moved by accesses of at most 16 bytes.
template <class T, int n>
struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) Pack { T values[n]; };

template <class T, int n>
__device__ inline bool holds_pack(const T* address) {
  return reinterpret_cast<unsigned long long>(address) % alignof(Pack<T, n>) == 0;
}
template <int n, class T>
__device__ inline void read(const T* from, float (&to)[n]) {
  if (holds_pack<T, n>(from)) {
    const Pack<T, n> pack = *reinterpret_cast<const Pack<T, n>*>(from);
#pragma unroll
    for (int k = 0; k < n; ++k) to[k] = float_of(pack.values[k]);
  } else {
#pragma unroll
    for (int k = 0; k < n; ++k) to[k] = float_of(from[k]);
  }
}
template <int n, class T>
__device__ inline void write(const float (&from)[n], T* to) {
  if (holds_pack<T, n>(to)) {
    Pack<T, n> pack;
#pragma unroll
    for (int k = 0; k < n; ++k) set(pack.values[k], from[k]);
    *reinterpret_cast<Pack<T, n>*>(to) = pack;
  } else {
#pragma unroll
    for (int k = 0; k < n; ++k) set(to[k], from[k]);
  }
}

__device__ inline float truth(bool x) { return x ? 1.0f : 0.0f; }
__device__ inline float sign_of(float x) { return x != x ? x : truth(x > 0) - truth(x < 0); }
__device__ inline float sigmoid_of(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ inline float softplus_of(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }
// NaN if one of the operands is.
__device__ inline float maximum_of(float x, float y) { return x != x || x >= y ? x : y; }
__device__ inline float minimum_of(float x, float y) { return x != x || x <= y ? x : y; }
// With the sign of the divisor.
__device__ inline float mod_of(float x, float y) {
  const float rest = fmodf(x, y);
  return rest * y < 0 ? rest + y : rest;
}
)";

}  // namespace trainctl::cuda
