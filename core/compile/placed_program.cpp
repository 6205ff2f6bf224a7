// Names regions, and computes the work of ops.
#include "core/compile/placed_program.h"

#include <array>
#include <cmath>

namespace trainctl {

std::string_view name_of(Region region) {
  static constexpr std::array<std::string_view, region_count> names{
      "parameters",          "gradients",         "partial gradients",
      "optimizer state",     "moving averages",   "running statistics",
      "gathered parameters", "converted weights", "scalars",
      "kept values",         "batches",           "activations and workspace"};
  return names[static_cast<std::size_t>(region)];
}

bool is_exchanged(Region region, const ParameterLayout& layout, bool on_host) {
  switch (region) {
    case Region::gradients:
    case Region::gathered:
      return true;
    case Region::parameters:
      return layout.shares(Quantity::states);
    case Region::averages:
      return layout.shares(Quantity::parameters);  // evaluation gathers them
    case Region::slot:
      // Buckets of gradients, and parameters that are gathered.
      return on_host && (layout.shares(Quantity::gradients) || layout.shares(Quantity::parameters));
    default:
      return false;
  }
}

OpWork work_of(const PlacedProgram& program, const Op& op) {
  const std::vector<Tensor>& tensors = program.program.tensors;
  const std::vector<TensorType> inputs = types_of(op.inputs, tensors);
  double bytes = 0;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    bytes += op.def->reads(i, inputs) * static_cast<double>(program.tensor(op.inputs[i]).layout.bytes);
  }
  for (TensorId id : op.outputs) bytes += op.def->writes(inputs) * static_cast<double>(program.tensor(id).layout.bytes);
  return {op.def->flops(inputs, types_of(op.outputs, tensors)), std::llround(bytes)};
}

}  // namespace trainctl
