// OpContext: an op in its program, for its lowering. OpBuffers: the addresses of its tensors in a run.
#pragma once

#include <vector>

#include "core/backend/backend.h"
#include "core/graph/op.h"

namespace trainctl {

struct OpContext {
  const Op& op;
  const Program& program;
  const std::vector<Layout>& inputs;  // present layouts of the inputs
  KernelChoices& choices;

  const TensorType& input(std::size_t index) const;
  const TensorType& output(std::size_t index) const;
  std::vector<TensorType> input_types() const;
  // The number of elements of each output.
  std::vector<std::int64_t> output_counts() const;
  // A Lowering with logical layouts for inputs and outputs; the caller fills in the rest.
  Lowering logical() const;
};

// The addresses of an op's tensors in one run.
struct OpBuffers {
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
