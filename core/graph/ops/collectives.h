// Collectives: ops over the ranks of the data axis.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// Sum over the ranks of the data axis, in place, of [offset, offset + count) of the gradient region.
// Inputs and outputs: the gradient region. Runs on the communication stream after everything queued before it.
struct AllReduce final : OpDef {
  int bucket = 0;
  std::int64_t offset = 0;
  std::int64_t count = 0;

  AllReduce(int b, std::int64_t o, std::int64_t c) : bucket(b), offset(o), count(c) {}
  std::string_view kind() const override { return "all_reduce"; }
  OpTrait trait() const override { return OpTrait::collective; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// The compute stream goes on when the bucket is reduced. Inputs and outputs: the gradient region.
struct WaitBucket final : OpDef {
  int bucket = 0;

  explicit WaitBucket(int b) : bucket(b) {}
  std::string_view kind() const override { return "wait"; }
  OpTrait trait() const override { return OpTrait::collective; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

}  // namespace trainctl
