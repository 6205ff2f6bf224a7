// The keys of kernel choices, and the choices that are made by rules.
#include "core/backend/cpu/lower.h"

#include "core/program/program.h"

namespace trainctl::cpu {

std::string LowerContext::key() const {
  std::string text(op.def->kind());
  if (const std::string attributes = op.def->attributes(); !attributes.empty()) text += " " + attributes;
  const auto append = [&](TensorId id, const Layout* layout) {
    const TensorType& type = program.tensor(id).type;
    text += " " + std::string(trainctl::name_of(layout ? layout->dtype : type.dtype)) + ":" + to_string(type.shape);
    if (layout && !layout->format.empty()) text += "(" + layout->format + ")";
  };
  for (std::size_t i = 0; i < op.inputs.size(); ++i) append(op.inputs[i], &inputs[i]);
  text += " ->";
  for (TensorId id : op.outputs) append(id, nullptr);
  return text + " threads=" + std::to_string(threads);
}

void LowerContext::settle(const std::string& key, std::string_view implementation) const {
  if (timing) {
    choices.assume(key);
  } else {
    choices.record(key, std::string(implementation));
  }
}

}  // namespace trainctl::cpu
