// Lowering of a fused op as the sequence of ops that it replaces.
#include "core/backend/parts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/backend/single_op.h"
#include "core/base/error.h"

namespace trainctl {
namespace {

struct LoweredPart {
  OpPart part;
  Lowering lowering;
};

class PartsKernel final : public Kernel {
 public:
  explicit PartsKernel(std::vector<std::unique_ptr<Kernel>> kernels) : kernels_(std::move(kernels)) {}

  void run(Stream& stream, const Slot& slot) override {
    for (const auto& kernel : kernels_) kernel->run(stream, slot);
  }

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

std::unique_ptr<Kernel> bind_parts(const std::vector<LoweredPart>& parts, const std::vector<std::int64_t>& offsets,
                                   std::int64_t bytes, const Binding& binding) {
  std::vector<Address> places = binding.inputs;
  places.insert(places.end(), binding.outputs.begin(), binding.outputs.end());
  for (std::int64_t offset : offsets) places.push_back(binding.workspace + offset);
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const LoweredPart& one : parts) {
    Binding inner;
    for (int i : one.part.inputs) inner.inputs.push_back(places.at(static_cast<std::size_t>(i)));
    for (int i : one.part.outputs) inner.outputs.push_back(places.at(static_cast<std::size_t>(i)));
    inner.workspace = binding.workspace + bytes;
    kernels.push_back(one.lowering.bind(inner));
  }
  return std::make_unique<PartsKernel>(std::move(kernels));
}

}  // namespace

Lowering lower_parts(const OpContext& context, const std::function<Lowering(const OpContext&)>& lower) {
  const Op& op = context.op;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) types.push_back(context.input(i));
  for (std::size_t i = 0; i < op.outputs.size(); ++i) types.push_back(context.output(i));
  std::vector<LoweredPart> parts;
  std::vector<std::int64_t> offsets;  // in the workspace, of the tensors between the parts
  std::int64_t bytes = 0, workspace = 0;
  std::string implementation;
  for (OpPart& part : op.def->parts()) {
    std::vector<TensorType> inputs;
    for (int i : part.inputs) inputs.push_back(types.at(static_cast<std::size_t>(i)));
    const SingleOp single(part.def, inputs, op.name, op.place);
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
    require(lowering.inputs == logical.inputs && lowering.outputs == logical.outputs, "parts lie in logical layouts");
    workspace = std::max(workspace, lowering.workspace_bytes);
    implementation += (implementation.empty() ? "" : " + ") + lowering.implementation;
    parts.push_back({std::move(part), std::move(lowering)});
  }
  require(!parts.empty(), "an op that is made of parts");
  Lowering lowering = context.logical();
  lowering.implementation = std::move(implementation);
  lowering.workspace_bytes = bytes + workspace;
  lowering.bind = [parts = std::move(parts), offsets = std::move(offsets), bytes](const Binding& binding) {
    return bind_parts(parts, offsets, bytes, binding);
  };
  return lowering;
}

}  // namespace trainctl
