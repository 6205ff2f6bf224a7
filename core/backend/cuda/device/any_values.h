// Values whose floating-point dtype a kernel gets as an argument, so that one compiled kernel serves all dtypes. This
// is for kernels that take little of a step's time, because a kernel for one dtype moves more bytes with each access.
#pragma once

#include <cstddef>
#include <type_traits>

#include "core/backend/cuda/device/pack.h"

namespace trainctl::cuda {

// A kernel's type of values, if the kernel gets the dtype as an argument.
struct AnyType {};

// Like a pointer to values of the dtype; Void is `void` or `const void`.
template <class Void>
class AnyValues {
 public:
  AnyValues(Void* values, DType dtype) : values_(values), dtype_(dtype) {
    require(dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16,
            "CUDA kernels do not compute in this dtype");
  }

  // Whether there are values; as for pointers, null means none.
  __host__ __device__ bool operator!=(std::nullptr_t) const { return values_ != nullptr; }
  __host__ __device__ AnyValues operator+(std::int64_t k) const {
    using Byte = std::conditional_t<std::is_const_v<Void>, const char, char>;
    AnyValues moved = *this;
    moved.values_ = static_cast<Byte*>(values_) + k * (dtype_ == DType::float32 ? 4 : 2);
    return moved;
  }
  // The values k to k + width - 1. Their address must be aligned to their size.
  template <int width>
  __device__ Pack<float, width> loaded(std::int64_t k) const {
    if (dtype_ == DType::bfloat16) return loaded_as<__nv_bfloat16, width>(k);
    if (dtype_ == DType::float16) return loaded_as<__half, width>(k);
    return pack_at<width>(static_cast<const float*>(values_) + k);
  }
  template <int width>
  __device__ void save(std::int64_t k, const Pack<float, width>& pack) const {
    if (dtype_ == DType::bfloat16) return save_as<__nv_bfloat16>(k, pack);
    if (dtype_ == DType::float16) return save_as<__half>(k, pack);
    pack_at<width>(static_cast<float*>(values_) + k) = pack;
  }
  __device__ float operator[](std::int64_t k) const { return loaded<1>(k).values[0]; }

 private:
  template <class T, int width>
  __device__ Pack<float, width> loaded_as(std::int64_t k) const {
    const Pack<T, width> pack = pack_at<width>(static_cast<const T*>(values_) + k);
    Pack<float, width> values;
#pragma unroll
    for (int i = 0; i < width; ++i) values.values[i] = load(pack.values[i]);
    return values;
  }
  template <class T, int width>
  __device__ void save_as(std::int64_t k, const Pack<float, width>& values) const {
    Pack<T, width> pack;
#pragma unroll
    for (int i = 0; i < width; ++i) pack.values[i] = store<T>(values.values[i]);
    pack_at<width>(static_cast<T*>(values_) + k) = pack;
  }

  Void* values_;
  DType dtype_;
};

// A kernel's parameters for values of type T, which may be AnyType.
template <class T>
struct ValuesOf {
  using Read = const T*;
  using Write = T*;
};
template <>
struct ValuesOf<AnyType> {
  using Read = AnyValues<const void>;
  using Write = AnyValues<void>;
};
template <class T>
using Read = typename ValuesOf<T>::Read;
template <class T>
using Write = typename ValuesOf<T>::Write;

// The parameters for these values; the dtype is that of T, unless T is AnyType.
template <class T>
Read<T> read(const void* values, DType dtype) {
  if constexpr (std::is_same_v<T, AnyType>)
    return {values, dtype};
  else
    return static_cast<const T*>(values);
}
template <class T>
Write<T> write(void* values, DType dtype) {
  if constexpr (std::is_same_v<T, AnyType>)
    return {values, dtype};
  else
    return static_cast<T*>(values);
}

}  // namespace trainctl::cuda
