// Searches for the first tensor that holds a NaN or Inf.
#include "core/exec/observe/not_finite.h"

#include <cstdint>
#include <cstring>

#include "core/backend/choices.h"
#include "core/backend/single_op.h"
#include "core/base/format.h"
#include "core/exec/observe/position_in_step.h"
#include "core/graph/ops/row_group.h"

namespace trainctl {
namespace {

// Whether an element is Inf or NaN: its exponent has only ones. bfloat16 is the upper half of a float32, so that both
// dtypes are checked in the same way.
bool holds_not_finite(const std::vector<std::byte>& bytes, DType dtype) {
  if (dtype != DType::float32 && dtype != DType::bfloat16 && dtype != DType::float16) return false;
  const std::uint16_t exponent = dtype == DType::float16 ? 0x7C00 : 0x7F80;
  const std::size_t size = static_cast<std::size_t>(size_of(dtype));
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    std::uint16_t upper = 0;
    std::memcpy(&upper, bytes.data() + at + size - sizeof(upper), sizeof(upper));
    if ((upper & exponent) == exponent) return true;
  }
  return false;
}

}  // namespace

std::string NotFiniteSearch::kind_within(const Op& group, const PlacedProgram& program, int slot) {
  const auto& def = group.as<RowGroup>();
  std::vector<TensorType> inputs;
  std::vector<std::vector<std::byte>> values;  // of all tensors of the ops; groups run in the host's memory
  for (const TensorId id : group.inputs) {
    inputs.push_back(program.program.tensor(id).type);
    engine_.read_tensor(program_, id, values.emplace_back(), slot);
  }
  const std::vector<TensorType> types = def.types(inputs);
  values.resize(types.size());
  const auto stream = engine_.backend().compute_stream();
  KernelChoices choices;
  for (const SubOp& sub : def.ops) {
    std::vector<TensorType> read;
    Binding binding;
    for (const int i : sub.inputs) {
      read.push_back(types[static_cast<std::size_t>(i)]);
      binding.inputs.push_back({values[static_cast<std::size_t>(i)].data()});
    }
    for (const int i : sub.outputs) {
      std::vector<std::byte>& written = values[static_cast<std::size_t>(i)];
      written.resize(static_cast<std::size_t>(types[static_cast<std::size_t>(i)].bytes()));
      binding.outputs.push_back({written.data()});
    }
    const SingleOp single(sub.def, read, group.name, group.location);
    const Lowering lowering = engine_.backend().lower(single.op, single.program, single.present, choices);
    std::vector<std::byte> workspace(static_cast<std::size_t>(lowering.workspace_bytes));
    binding.workspace = {workspace.data()};
    lowering.bind(binding)->run(*stream, {});
    stream->synchronize();
    for (const int i : sub.outputs) {
      const auto number = static_cast<std::size_t>(i);
      if (holds_not_finite(values[number], types[number].dtype)) return std::string(sub.def->kind());
    }
  }
  return "";
}

void NotFiniteSearch::ran(const PlacedProgram& program, int segment, int op, int slot, double, double) {
  const Phase phase = program.segment(segment).phase;
  if (!found_.empty() || phase == Phase::exchange) return;
  const Op& done = program.op(segment, op).op;
  if (done.get_if<RowGroup>() != nullptr) {
    const std::string kind = kind_within(done, program, slot);
    if (!kind.empty()) {
      found_ = format("a value inside of '{}', computed by {} in {}", done.name, kind,
                      name_of(phase, program.segment(segment).variant));
      position_ = position_in_step(program, segment, op, rank_);
      return;
    }
  }
  for (TensorId output : done.outputs) {
    const Tensor& tensor = program.program.tensor(output);
    if (output == program.program.step.gradients || output == program.program.step.agree) continue;
    engine_.read_tensor(program_, output, bytes_, slot);
    if (!holds_not_finite(bytes_, program.tensor(output).layout.dtype)) continue;
    found_ = format("'{}', written by {} in {}", tensor.name, done.def->kind(),
                    name_of(phase, program.segment(segment).variant));
    position_ = position_in_step(program, segment, op, rank_);
    return;
  }
}

}  // namespace trainctl
