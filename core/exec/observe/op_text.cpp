// Describes ops by their kind, their name and the layers of their data.
#include "core/exec/observe/op_text.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/compile/placed_program.h"
#include "core/graph/ops/collectives.h"

namespace trainctl {
namespace {

// " (conv5 ... fc1)", the layers of a bucket, whose parameters are in the order of the backward pass; "" if the tensor
// holds no parameters and no gradients.
std::string layers_text(const Program& program, TensorId tensor) {
  std::vector<std::string> layers;
  for (TensorId member : program.tensor(tensor).members) {
    const auto entry =
        std::find_if(program.flat.parameters.begin(), program.flat.parameters.end(),
                     [member](const FlatEntry& each) { return each.parameter == member || each.gradient == member; });
    if (entry == program.flat.parameters.end()) continue;  // a sum that is reduced with the gradients
    const std::string& name = program.tensor(entry->parameter).name;
    layers.push_back(name.substr(0, name.rfind('/')));
  }
  if (layers.empty()) return "";
  const std::string &first = layers.back(), &last = layers.front();
  return first == last ? format(" ({})", first) : format(" ({} ... {})", first, last);
}

}  // namespace

std::string collective_text(const Program& program, const Op& op) {
  std::string layers;
  for (const auto* tensors : {&op.inputs, &op.outputs}) {
    if (layers.empty() && !tensors->empty()) layers = layers_text(program, tensors->front());
  }
  const bool waits = op.get_if<Wait>() != nullptr;
  return format("{} {} {}{}", op.def->kind(), waits ? "for" : "of", op.name, layers);
}

std::string op_text(const PlacedProgram& program, int segment, int op) {
  const Op& described = program.op(segment, op).op;
  if (described.def->trait() == OpTrait::collective) return collective_text(program.program, described);
  const PlacedSegment& in = program.segment(segment);
  return format("{} '{}' in {}", described.def->kind(), described.name, name_of(in.phase, in.variant));
}

}  // namespace trainctl
