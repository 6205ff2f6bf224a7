// Weights rounded to bfloat16.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/exec/interfaces/snapshot.h"

namespace trainctl {

// Tensors of the same names and shapes as float32 ones, rounded, and the memory in which they lie.
class Bfloat16Tensors {
 public:
  explicit Bfloat16Tensors(std::span<const NamedTensor> from);
  Bfloat16Tensors(const Bfloat16Tensors&) = delete;
  Bfloat16Tensors& operator=(const Bfloat16Tensors&) = delete;

  std::vector<NamedTensor> tensors;

 private:
  std::vector<std::vector<std::uint16_t>> memory_;
};

}  // namespace trainctl
