// Fuses batch normalisations with the sum that adds a residual, and with a ReLU.
#pragma once

#include "core/graph/ops/fusion.h"
#include "core/graph/ops/normalization/batch_norm.h"

namespace trainctl {

// Fuses an op with the sum or the ReLU that reads its result. The op's definition has a member `a` of type
// BatchNormAttributes. The other summand of the sum becomes the residual. ReLU is the last operation of the fused op,
// so that no residual can be added after it.
template <class Def>
std::optional<Op> fused_batch_norm(Def def, const Op& op, const Op& reader, std::size_t operand) {
  const auto* add = reader.get_if<Add>();
  const ActivationFunction* function = add != nullptr ? &add->function : fusible_function(reader);
  if (function == nullptr || def.a.relu) return {};
  const bool relu = function->kind == ActivationKind::relu;
  const bool fits = relu || (add != nullptr && function->kind == ActivationKind::none);
  if (!fits || (add != nullptr && def.a.residual)) return {};
  def.a.relu = relu;
  def.a.residual = def.a.residual || add != nullptr;
  Op fused = fused_op(op, std::make_shared<Def>(std::move(def)), reader);
  if (add != nullptr) fused.inputs.push_back(reader.inputs[1 - operand]);
  return fused;
}

}  // namespace trainctl
