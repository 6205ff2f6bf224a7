// The parts of a lowering that all ops share.
#include "core/backend/cuda/lower.h"

#include "core/base/format.h"

namespace trainctl::cuda {

std::string LowerContext::key() const {
  std::string text(op.def->kind());
  if (const std::string attributes = op.def->attributes(); !attributes.empty()) text += " " + attributes;
  const auto append = [&](const TensorType& type) {
    text += format(" {}:{}", trainctl::name_of(type.dtype), to_string(type.shape));
  };
  for (TensorId id : op.inputs) append(program.tensor(id).type);
  text += " ->";
  for (TensorId id : op.outputs) append(program.tensor(id).type);
  return text;
}

Lowering LowerContext::logical() const {
  Lowering lowering;
  for (TensorId id : op.inputs) lowering.inputs.push_back(logical_layout(program.tensor(id).type));
  for (TensorId id : op.outputs) lowering.outputs.push_back(logical_layout(program.tensor(id).type));
  return lowering;
}

std::string LowerContext::label() const {
  const std::string where = to_string(op.place);
  return format("{} '{}'{}", op.def->kind(), op.name, where.empty() ? "" : " (" + where + ")");
}

}  // namespace trainctl::cuda
