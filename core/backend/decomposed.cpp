// Lowering of an op as a sequence of other ops that compute the same.
#include "core/backend/decomposed.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/backend/single_op.h"
#include "core/base/error.h"

namespace trainctl {
namespace {

struct LoweredSubOp {
  SubOp part;
  Lowering lowering;
};

class DecomposedKernel final : public Kernel {
 public:
  explicit DecomposedKernel(std::vector<std::unique_ptr<Kernel>> kernels) : kernels_(std::move(kernels)) {}

  void run(Stream& stream, const Slot& slot) override {
    for (const auto& kernel : kernels_) kernel->run(stream, slot);
  }

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

std::unique_ptr<Kernel> bind_parts(const std::vector<LoweredSubOp>& parts, const std::vector<std::int64_t>& offsets,
                                   std::int64_t bytes, const Binding& binding) {
  std::vector<Address> buffers = binding.inputs;
  buffers.insert(buffers.end(), binding.outputs.begin(), binding.outputs.end());
  for (std::int64_t offset : offsets) buffers.push_back(binding.workspace + offset);
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const LoweredSubOp& one : parts) {
    Binding inner;
    for (int i : one.part.inputs) inner.inputs.push_back(buffers.at(static_cast<std::size_t>(i)));
    for (int i : one.part.outputs) inner.outputs.push_back(buffers.at(static_cast<std::size_t>(i)));
    inner.workspace = binding.workspace + bytes;
    kernels.push_back(one.lowering.bind(inner));
  }
  return std::make_unique<DecomposedKernel>(std::move(kernels));
}

// By number of a tensor, how many inputs of parts it is.
std::vector<int> count_readers(const std::vector<SubOp>& parts, std::size_t tensors) {
  std::vector<int> readers(tensors, 0);
  for (const SubOp& part : parts) {
    for (int i : part.inputs) {
      if (static_cast<std::size_t>(i) < tensors) ++readers[static_cast<std::size_t>(i)];
    }
  }
  return readers;
}

}  // namespace

Lowering lower_decomposed(const OpContext& context, std::vector<SubOp> parts,
                          const std::function<Lowering(const OpContext&)>& lower) {
  require(!parts.empty(), "an op that is made of parts");
  const Op& op = context.op;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) types.push_back(context.input(i));
  for (std::size_t i = 0; i < op.outputs.size(); ++i) types.push_back(context.output(i));
  const std::vector<int> readers = count_readers(parts, op.inputs.size());
  Lowering whole = context.logical();
  std::vector<LoweredSubOp> lowered;
  std::vector<std::int64_t> offsets;  // in the workspace, of the tensors between the parts
  std::int64_t bytes = 0, workspace = 0;
  for (SubOp& part : parts) {
    std::vector<TensorType> inputs;
    for (int i : part.inputs) inputs.push_back(types.at(static_cast<std::size_t>(i)));
    const SingleOp single(part.def, inputs, op.name, op.location);
    for (std::size_t i = 0; i < part.outputs.size(); ++i) {
      const auto number = static_cast<std::size_t>(part.outputs[i]);
      if (number < types.size()) continue;
      require(number == types.size(), "tensors between parts are numbered as they come");
      types.push_back(single.program.tensor(single.op.outputs[i]).type);
      offsets.push_back(bytes);
      bytes += workspace_part(types.back().bytes());
    }
    const OpContext inner{single.op, single.program, single.present, context.choices};
    Lowering lowering = lower(inner);
    const Lowering logical = inner.logical();
    for (std::size_t i = 0; i < lowering.inputs.size(); ++i) {
      if (lowering.inputs[i] == logical.inputs[i]) continue;
      const auto number = static_cast<std::size_t>(part.inputs[i]);
      require(number < op.inputs.size() && readers[number] == 1,
              "a tensor of several parts lies in its logical layout");
      whole.inputs[number] = lowering.inputs[i];
    }
    require(lowering.outputs == logical.outputs, "outputs of parts lie in logical layouts");
    workspace = std::max(workspace, lowering.workspace_bytes);
    whole.implementation += (whole.implementation.empty() ? "" : " + ") + lowering.implementation;
    lowered.push_back({std::move(part), std::move(lowering)});
  }
  whole.workspace_bytes = bytes + workspace;
  whole.bind = [lowered = std::move(lowered), offsets = std::move(offsets), bytes](const Binding& binding) {
    return bind_parts(lowered, offsets, bytes, binding);
  };
  return whole;
}

}  // namespace trainctl
