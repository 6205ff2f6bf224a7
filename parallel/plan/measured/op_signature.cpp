// Signatures of ops.
#include "parallel/plan/measured/op_signature.h"

#include "core/base/format.h"
#include "core/base/hash.h"

namespace trainctl {
namespace {

void add_tensors(std::string& text, const PlacedProgram& program, const std::vector<TensorId>& tensors) {
  for (const TensorId id : tensors) {
    const Layout& layout = program.tensor(id).layout;
    text += format(" {}:{}:{}:{}", to_string(program.program.tensor(id).type.shape), name_of(layout.dtype),
                   layout.format, layout.bytes);
  }
}

}  // namespace

std::string op_signature(const PlacedProgram& program, const PlacedOp& placed) {
  const Op& op = placed.op;
  std::string text = format("{} {}:", placed.lowering.implementation, op.def->attributes());
  add_tensors(text, program, op.inputs);
  text += " to";
  add_tensors(text, program, op.outputs);
  return format("{} {:016x}", op.def->kind(), xxh3(text.data(), text.size()));
}

}  // namespace trainctl
