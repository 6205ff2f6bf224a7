// Searches for the first tensor that holds a NaN or Inf.
#include "core/exec/observe/not_finite.h"

#include <cstdint>
#include <cstring>

#include "core/base/format.h"
#include "core/exec/observe/position_in_step.h"

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

void NotFiniteSearch::ran(const PlacedProgram& program, int segment, int op, int slot, double, double) {
  const Phase phase = program.segment(segment).phase;
  if (!found_.empty() || phase == Phase::exchange) return;
  const Op& done = program.op(segment, op).op;
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
