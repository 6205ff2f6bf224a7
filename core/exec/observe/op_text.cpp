// Describes ops by their kind, their name and the layers of their data.
#include "core/exec/observe/op_text.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/compile/placed_program.h"
#include "core/graph/ops/collectives.h"

namespace trainctl {
namespace {

// The layer of a parameter, given the parameter or its gradient; the tensor's own name if it belongs to no parameter.
std::string layer_of(const Program& program, TensorId tensor) {
  const std::vector<FlatEntry>& parameters = program.flat.parameters;
  const auto entry = std::find_if(parameters.begin(), parameters.end(), [tensor](const FlatEntry& each) {
    return each.parameter == tensor || each.gradient == tensor;
  });
  if (entry == parameters.end()) return program.tensor(tensor).name;
  const std::string& name = program.tensor(entry->parameter).name;
  return name.substr(0, name.rfind('/'));
}

// " (conv5 ... fc1)", the layers of a bucket; "" if the tensor is no bucket. Buckets are in the order of the backward
// pass.
std::string layers_text(const Program& program, TensorId tensor) {
  const std::vector<TensorId>& members = program.tensor(tensor).members;
  if (members.empty()) return "";
  const std::string first = layer_of(program, members.back()), last = layer_of(program, members.front());
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
