// Fusion rules that several ops share (OpDef::fused_with()).
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "core/graph/ops/elementwise/activations.h"

namespace trainctl {

// A copy of the op with the definition `def`, which writes the first output of `reader` instead of its own.
inline Op fused_op(const Op& op, std::shared_ptr<const OpDef> def, const Op& reader) {
  Op fused = op;
  fused.def = std::move(def);
  fused.outputs[0] = reader.outputs[0];
  return fused;
}

// The function of a reader that is an activation and can be fused with other ops; otherwise nullptr.
inline const ActivationFunction* fusible_function(const Op& reader) {
  const auto* activation = reader.get_if<Activation>();
  return activation != nullptr && can_be_fused(activation->function.kind) ? &activation->function : nullptr;
}

// Fuses an op that has a member `function`, the activation that it applies to its result, with the activation that
// reads it.
template <class Def>
std::optional<Op> fused_with_activation(Def def, const Op& op, const Op& reader) {
  const ActivationFunction* function = fusible_function(reader);
  if (function == nullptr || def.function.kind != ActivationKind::none) return {};
  def.function = *function;
  return fused_op(op, std::make_shared<Def>(std::move(def)), reader);
}

// Fuses an op that computes a gradient with the sum that reads it as operand number `operand`. `adding` is the
// definition of the fused op, which adds its result to another gradient. Empty if the reader is not a plain sum.
inline std::optional<Op> fused_with_sum(std::shared_ptr<const OpDef> adding, const Op& op, const Op& reader,
                                        std::size_t operand) {
  const auto* add = reader.get_if<Add>();
  if (add == nullptr || add->function.kind != ActivationKind::none) return {};
  Op fused = fused_op(op, std::move(adding), reader);
  fused.inputs.push_back(reader.inputs[1 - operand]);
  return fused;
}

}  // namespace trainctl
