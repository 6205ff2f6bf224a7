// Divides by a number that is known only when a kernel starts.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/base/error.h"

namespace trainctl::cuda {

// Divides numbers below 2^31 by a divisor of 1 to 2^31 with a multiplication and a shift, since GPUs have no
// instruction for division (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994).
class Divisor {
 public:
  explicit Divisor(std::int64_t divisor) {
    require(divisor >= 1 && divisor <= std::int64_t{1} << 31, "a divisor is not between 1 and 2^31");
    const auto by = static_cast<std::uint64_t>(divisor);
    while (std::uint64_t{1} << (shift_ - 31) < by) ++shift_;
    factor_ = static_cast<std::uint32_t>(((std::uint64_t{1} << shift_) + by - 1) / by);
    divisor_ = static_cast<std::uint32_t>(by);
  }

  __host__ __device__ std::uint32_t quotient(std::uint32_t number) const {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(number) * factor_ >> shift_);
  }
  // The remainder of the division of `number`, given its `quotient` from quotient().
  __host__ __device__ std::uint32_t remainder(std::uint32_t number, std::uint32_t quotient) const {
    return number - quotient * divisor_;
  }

 private:
  std::uint32_t divisor_ = 1, factor_ = 0;
  int shift_ = 31;
};

}  // namespace trainctl::cuda
