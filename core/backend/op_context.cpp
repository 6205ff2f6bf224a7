// OpContext: the types and layouts of an op's tensors.
#include "core/backend/op_context.h"

#include "core/program/program.h"

namespace trainctl {

const TensorType& OpContext::input(std::size_t index) const { return program.tensor(op.inputs[index]).type; }

const TensorType& OpContext::output(std::size_t index) const { return program.tensor(op.outputs[index]).type; }

std::vector<TensorType> OpContext::input_types() const { return types_of(op.inputs, program.tensors); }

std::vector<std::int64_t> OpContext::output_counts() const {
  std::vector<std::int64_t> counts;
  for (TensorId id : op.outputs) counts.push_back(program.tensor(id).type.shape.count());
  return counts;
}

Lowering OpContext::logical() const {
  Lowering lowering;
  for (TensorId id : op.inputs) lowering.inputs.push_back(logical_layout(program.tensor(id).type));
  for (TensorId id : op.outputs) lowering.outputs.push_back(logical_layout(program.tensor(id).type));
  return lowering;
}

}  // namespace trainctl
