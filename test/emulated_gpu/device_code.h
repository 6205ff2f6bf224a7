// What kernels use beyond the C++ language: indices, shared memory, barriers, warp exchanges, atomics, mathematics.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#undef __shared__
#undef __launch_bounds__
// All shared variables are in the module's thread-local storage, which is filled with NaN before each block.
#define __shared__ static thread_local
#define __launch_bounds__(...)

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace emulated {

using Where = std::source_location;

enum class Exchange { lane, ballot, any, all, match };

// Waits for all threads of the block; returns for how many of them the predicate holds.
int meet_block(bool predicate, const Where& where);

// Waits for the threads of the warp that are in the mask. Exchange::lane returns the bits of lane `source`, or all ones
// if that lane does not take part; ballot returns the lanes whose `bits` are not 0; any and all return 0 or 1; match
// returns the lanes with the same bits.
std::uint64_t meet_warp(Exchange what, unsigned mask, std::uint64_t bits, unsigned source, const Where& where);

inline unsigned lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % static_cast<unsigned>(warpSize);
}

template <class T>
T shuffle(unsigned mask, T value, unsigned source, const Where& where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = meet_warp(Exchange::lane, mask, bits, source, where);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// Returns the source, or the lane itself if the source is outside of its group of `width` lanes.
inline unsigned within(unsigned source, unsigned width, bool inside) { return inside && width > 0 ? source : lane(); }

}  // namespace emulated

#define EMULATED_WHERE const emulated::Where& where = emulated::Where::current()

inline void __syncthreads(EMULATED_WHERE) { emulated::meet_block(true, where); }
inline int __syncthreads_count(int predicate, EMULATED_WHERE) { return emulated::meet_block(predicate != 0, where); }
inline int __syncthreads_or(int predicate, EMULATED_WHERE) { return emulated::meet_block(predicate != 0, where) > 0; }
inline int __syncthreads_and(int predicate, EMULATED_WHERE) { return emulated::meet_block(predicate == 0, where) == 0; }
inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATED_WHERE) {
  emulated::meet_warp(emulated::Exchange::any, mask, 0, 0, where);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, EMULATED_WHERE) {
  const unsigned group = static_cast<unsigned>(width), first = emulated::lane() & ~(group - 1);
  return emulated::shuffle(mask, value, first + static_cast<unsigned>(source) % group, where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize, EMULATED_WHERE) {
  const unsigned group = static_cast<unsigned>(width), source = emulated::lane() ^ static_cast<unsigned>(lanes);
  return emulated::shuffle(mask, value, emulated::within(source, group, source < (emulated::lane() | (group - 1)) + 1),
                           where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = warpSize, EMULATED_WHERE) {
  const unsigned group = static_cast<unsigned>(width), lane = emulated::lane(), source = lane + lanes;
  return emulated::shuffle(mask, value, emulated::within(source, group, source <= (lane | (group - 1))), where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = warpSize, EMULATED_WHERE) {
  const unsigned group = static_cast<unsigned>(width), lane = emulated::lane();
  return emulated::shuffle(mask, value, emulated::within(lane - lanes, group, lane % group >= lanes), where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATED_WHERE) {
  return static_cast<unsigned>(emulated::meet_warp(emulated::Exchange::ballot, mask, predicate != 0, 0, where));
}
inline int __any_sync(unsigned mask, int predicate, EMULATED_WHERE) {
  return static_cast<int>(emulated::meet_warp(emulated::Exchange::any, mask, predicate != 0, 0, where));
}
inline int __all_sync(unsigned mask, int predicate, EMULATED_WHERE) {
  return static_cast<int>(emulated::meet_warp(emulated::Exchange::all, mask, predicate != 0, 0, where));
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, EMULATED_WHERE) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return static_cast<unsigned>(emulated::meet_warp(emulated::Exchange::match, mask, bits, 0, where));
}

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

// One thread at a time runs kernels, so that a read followed by a write is atomic.
template <class T, class Change>
T emulated_atomic(T* at, const Change& change) {
  const T before = *at;
  *at = change(before);
  return before;
}
template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return emulated_atomic(at, [=](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicSub(T* at, std::type_identity_t<T> value) {
  return emulated_atomic(at, [=](T old) { return static_cast<T>(old - value); });
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return emulated_atomic(at, [=](T old) { return old < value ? value : old; });
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return emulated_atomic(at, [=](T old) { return value < old ? value : old; });
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  return emulated_atomic(at, [=](T old) { return old | value; });
}
template <class T>
T atomicAnd(T* at, std::type_identity_t<T> value) {
  return emulated_atomic(at, [=](T old) { return old & value; });
}
template <class T>
T atomicExch(T* at, std::type_identity_t<T> value) {
  return emulated_atomic(at, [=](T) { return value; });
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return emulated_atomic(at, [=](T old) { return old == expected ? value : old; });
}

template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcs(const T* at) {
  return *at;
}
template <class T>
T __ldcg(const T* at) {
  return *at;
}
template <class T>
void __stcs(T* at, std::type_identity_t<T> value) {
  *at = value;
}

inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __saturatef(float x) { return x > 0 ? std::fmin(x, 1.0f) : 0.0f; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }

inline unsigned __float_as_uint(float x) {
  unsigned bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}
inline int __float_as_int(float x) { return static_cast<int>(__float_as_uint(x)); }
inline float __uint_as_float(unsigned bits) {
  float x = 0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline float __int_as_float(int bits) { return __uint_as_float(static_cast<unsigned>(bits)); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(std::uint64_t{a} * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }

inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
template <class T>
requires std::is_integral_v<T>
constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T>
requires std::is_integral_v<T>
constexpr T max(T a, T b) { return a < b ? b : a; }
