// Fusion rules that several ops share (OpDef::fused_with()).
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "core/graph/ops/elementwise/activations.h"

namespace trainctl {

// The op with another definition, which writes the reader's first output instead of its own.
inline Op fused_op(const Op& op, std::shared_ptr<const OpDef> def, const Op& reader) {
  Op fused = op;
  fused.def = std::move(def);
  fused.outputs[0] = reader.outputs[0];
  return fused;
}

// The function of a reader that is an activation which other ops can compute with their own result, or null.
inline const ActivationFunction* fusible_function(const Op& reader) {
  const auto* activation = reader.get_if<Activation>();
  return activation != nullptr && can_be_fused(activation->function.kind) ? &activation->function : nullptr;
}

// An op that computes an activation with its result in its member `function`: fused with the activation that reads it.
template <class Def>
std::optional<Op> fused_with_activation(Def def, const Op& op, const Op& reader) {
  const ActivationFunction* function = fusible_function(reader);
  if (function == nullptr || def.function.kind != ActivationKind::none) return {};
  def.function = *function;
  return fused_op(op, std::make_shared<Def>(std::move(def)), reader);
}

// The gradient by an op's input with the definition `adding`, which adds it to another gradient: fused with the sum
// that reads it as operand number `operand`. Nothing if the reader is no plain sum.
inline std::optional<Op> fused_with_sum(std::shared_ptr<const OpDef> adding, const Op& op, const Op& reader,
                                        std::size_t operand) {
  const auto* add = reader.get_if<Add>();
  if (add == nullptr || add->function.kind != ActivationKind::none) return {};
  Op fused = fused_op(op, std::move(adding), reader);
  fused.inputs.push_back(reader.inputs[1 - operand]);
  return fused;
}

}  // namespace trainctl
