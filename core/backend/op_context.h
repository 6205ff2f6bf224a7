// What every backend's lowerings start from: an op in its program, and the places of its tensors in a run.
#pragma once

#include <vector>

#include "core/backend/backend.h"

namespace trainctl {

struct OpContext {
  const Op& op;
  const Program& program;
  const std::vector<Layout>& inputs;  // as they lie
  KernelChoices& choices;

  const TensorType& input(std::size_t index) const { return program.tensor(op.inputs[index]).type; }
  const TensorType& output(std::size_t index) const { return program.tensor(op.outputs[index]).type; }
  // How many values each output has.
  std::vector<std::int64_t> output_counts() const {
    std::vector<std::int64_t> counts;
    for (TensorId id : op.outputs) counts.push_back(program.tensor(id).type.shape.count());
    return counts;
  }
  // A Lowering whose inputs and outputs lie in their logical layouts; the caller fills in the rest.
  Lowering logical() const {
    Lowering lowering;
    for (TensorId id : op.inputs) lowering.inputs.push_back(logical_layout(program.tensor(id).type));
    for (TensorId id : op.outputs) lowering.outputs.push_back(logical_layout(program.tensor(id).type));
    return lowering;
  }
};

// The tensors of one run.
struct OpPlaces {
  const Binding& binding;
  const Slot& slot;

  template <class T>
  T* in(std::size_t index) const {
    return binding.inputs[index].as<T>(slot);
  }
  template <class T>
  T* out(std::size_t index) const {
    return binding.outputs[index].as<T>(slot);
  }
  template <class T>
  T* workspace(std::int64_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(binding.workspace.at(slot) + offset_bytes);
  }
};

}  // namespace trainctl
