// The lowering of an op as a sequence of other ops: layouts, workspace and the joint kernel.
#include "core/backend/decomposed.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/backend/single_op.h"
#include "core/base/error.h"

namespace trainctl {
namespace {

struct LoweredSubOp {
  SubOp op;
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

// `offsets` are the workspace offsets of the tensors between the sub-ops, and `bytes` is the workspace offset of the
// shared workspace.
std::unique_ptr<Kernel> bind_sub_ops(const std::vector<LoweredSubOp>& sub_ops, const std::vector<std::int64_t>& offsets,
                                     std::int64_t bytes, const Binding& binding) {
  std::vector<Address> buffers = binding.inputs;
  buffers.insert(buffers.end(), binding.outputs.begin(), binding.outputs.end());
  for (std::int64_t offset : offsets) buffers.push_back(binding.workspace + offset);
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const LoweredSubOp& sub_op : sub_ops) {
    Binding inner;
    for (int i : sub_op.op.inputs) inner.inputs.push_back(buffers.at(static_cast<std::size_t>(i)));
    for (int i : sub_op.op.outputs) inner.outputs.push_back(buffers.at(static_cast<std::size_t>(i)));
    inner.workspace = binding.workspace + bytes;
    kernels.push_back(sub_op.lowering.bind(inner));
  }
  return std::make_unique<DecomposedKernel>(std::move(kernels));
}

// Counts for each of the first `tensors` tensors how often it is an input of a sub-op.
std::vector<int> count_readers(const std::vector<SubOp>& sub_ops, std::size_t tensors) {
  std::vector<int> readers(tensors, 0);
  for (const SubOp& sub_op : sub_ops) {
    for (int i : sub_op.inputs) {
      if (static_cast<std::size_t>(i) < tensors) ++readers[static_cast<std::size_t>(i)];
    }
  }
  return readers;
}

}  // namespace

Lowering lower_decomposed(const OpContext& context, std::vector<SubOp> sub_ops,
                          const std::function<Lowering(const OpContext&)>& lower) {
  require(!sub_ops.empty(), "a decomposed op has no sub-ops");
  const Op& op = context.op;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) types.push_back(context.input(i));
  for (std::size_t i = 0; i < op.outputs.size(); ++i) types.push_back(context.output(i));
  const std::vector<int> readers = count_readers(sub_ops, op.inputs.size());
  Lowering whole = context.logical();
  std::vector<LoweredSubOp> lowered;
  std::vector<std::int64_t> offsets;  // workspace offsets of the tensors between the sub-ops
  std::int64_t bytes = 0, workspace = 0;
  for (SubOp& sub_op : sub_ops) {
    std::vector<TensorType> inputs;
    for (int i : sub_op.inputs) inputs.push_back(types.at(static_cast<std::size_t>(i)));
    const SingleOp single(sub_op.def, inputs, op.name, op.location);
    for (std::size_t i = 0; i < sub_op.outputs.size(); ++i) {
      const auto number = static_cast<std::size_t>(sub_op.outputs[i]);
      if (number < types.size()) continue;
      require(number == types.size(), "tensors between sub-ops are not numbered in order of appearance");
      types.push_back(single.program.tensor(single.op.outputs[i]).type);
      offsets.push_back(bytes);
      bytes += workspace_section(types.back().bytes());
    }
    const OpContext inner{single.op, single.program, single.present, context.choices};
    Lowering lowering = lower(inner);
    const Lowering logical = inner.logical();
    for (std::size_t i = 0; i < lowering.inputs.size(); ++i) {
      if (lowering.inputs[i] == logical.inputs[i]) continue;
      const auto number = static_cast<std::size_t>(sub_op.inputs[i]);
      require(number < op.inputs.size() && readers[number] == 1,
              "a tensor of several sub-ops does not have its logical layout");
      whole.inputs[number] = lowering.inputs[i];
    }
    require(lowering.outputs == logical.outputs, "an output of a sub-op does not have its logical layout");
    workspace = std::max(workspace, lowering.workspace_bytes);
    whole.implementation += (whole.implementation.empty() ? "" : " + ") + lowering.implementation;
    lowered.push_back({std::move(sub_op), std::move(lowering)});
  }
  whole.workspace_bytes = bytes + workspace;
  whole.bind = [lowered = std::move(lowered), offsets = std::move(offsets), bytes](const Binding& binding) {
    return bind_sub_ops(lowered, offsets, bytes, binding);
  };
  return whole;
}

}  // namespace trainctl
