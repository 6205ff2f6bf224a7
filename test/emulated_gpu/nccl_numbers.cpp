// Reduces the numbers of the emulated NCCL.
#include "test/emulated_gpu/nccl_numbers.h"

#include <algorithm>
#include <cstdint>

#include "test/emulated_gpu/values.h"

namespace emulated {
namespace {

// Replaces each value at `to` by its sum, minimum or maximum with the value at `from`.
template <class T>
void reduce(ncclRedOp_t operation, void* to, const void* from, std::size_t count) {
  auto* target = static_cast<T*>(to);
  const auto* source = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i) {
    target[i] = operation == ncclSum   ? static_cast<T>(target[i] + source[i])
                : operation == ncclMin ? std::min(target[i], source[i])
                                       : std::max(target[i], source[i]);
  }
}
void reduce_halves(Number type, ncclRedOp_t operation, void* to, const void* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    float value = load(to, type, at);
    const float other = load(from, type, at);
    reduce<float>(operation, &value, &other, 1);
    store(to, type, at, value);
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 4;
  }
}

void reduce(ncclDataType_t type, ncclRedOp_t operation, void* to, const void* from, std::size_t count) {
  switch (type) {
    case ncclFloat32:
      return reduce<float>(operation, to, from, count);
    case ncclFloat64:
      return reduce<double>(operation, to, from, count);
    case ncclInt32:
      return reduce<std::int32_t>(operation, to, from, count);
    case ncclInt64:
      return reduce<std::int64_t>(operation, to, from, count);
    case ncclUint8:
      return reduce<std::uint8_t>(operation, to, from, count);
    case ncclFloat16:
      return reduce_halves(Number::f16, operation, to, from, count);
    default:
      return reduce_halves(Number::bf16, operation, to, from, count);
  }
}

}  // namespace emulated
