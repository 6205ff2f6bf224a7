// The default implementations of OpDef's functions.
#include "core/graph/op.h"

#include "core/base/format.h"

namespace trainctl {

std::shared_ptr<const OpDef> OpDef::on_shard(std::span<const TensorType>, std::span<const std::optional<int>>,
                                             const ShardPosition&) const {
  return nullptr;
}

double OpDef::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return outputs.empty() ? 0 : static_cast<double>(outputs[0].shape.count());
}

std::optional<Op> OpDef::joined_with(const Op&, const Op&) const { return {}; }

std::optional<Op> OpDef::fused_with(const Op&, const Op&, std::size_t) const { return {}; }

void OpDef::differentiate(const Op& op, Differentiator&) const {
  require(false, format("{} ({}) has no gradient", kind(), op.name));
}

}  // namespace trainctl
