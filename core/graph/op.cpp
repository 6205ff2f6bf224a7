// Default implementations of an op's rules.
#include "core/graph/op.h"

#include "core/base/format.h"

namespace trainctl {

double OpDef::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return outputs.empty() ? 0 : static_cast<double>(outputs[0].shape.count());
}

void OpDef::differentiate(const Op& op, Differentiator&) const {
  require(false, format("{} ({}) has no gradient", kind(), op.name));
}

}  // namespace trainctl
