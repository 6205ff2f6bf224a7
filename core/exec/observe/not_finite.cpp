// Searches for the first tensor that holds a NaN or Inf.
#include "core/exec/observe/not_finite.h"

#include <algorithm>
#include <cstring>

#include "core/base/format.h"
#include "core/exec/observe/position_in_step.h"

namespace trainctl {
namespace {

// Returns the offset in bytes of the first element that is Inf or NaN, whose exponent has only ones; -1 if there is
// none. bfloat16 is the upper half of a float32, so that both dtypes are checked in the same way.
std::ptrdiff_t first_not_finite(const std::byte* bytes, std::size_t count, DType dtype) {
  if (dtype != DType::float32 && dtype != DType::bfloat16 && dtype != DType::float16) return -1;
  const std::uint16_t exponent = dtype == DType::float16 ? 0x7C00 : 0x7F80;
  const std::size_t size = static_cast<std::size_t>(size_of(dtype));
  for (std::size_t at = 0; at + size <= count; at += size) {
    std::uint16_t upper = 0;
    std::memcpy(&upper, bytes + at + size - sizeof(upper), sizeof(upper));
    if ((upper & exponent) == exponent) return static_cast<std::ptrdiff_t>(at);
  }
  return -1;
}

}  // namespace

std::string to_text(const NotFiniteTensor& tensor) {
  if (tensor.name.empty()) return "";
  std::string text = format("'{}', written by {} in {}", tensor.name, tensor.op, tensor.phase);
  if (tensor.sample) text += format(", for sample {} of the data", *tensor.sample);
  if (tensor.rank >= 0) text += format(" (rank {})", tensor.rank);
  return text;
}

void NotFiniteSearch::ran(const PlacedProgram& program, int segment, int op, int slot, double, double) {
  if (segment == program.copies_segment) return;
  follower_.follow(program.program, segment, op, slot);
  const Phase phase = program.segment(segment).phase;
  if (!found_.name.empty() || phase == Phase::exchange) return;
  const Op& done = program.op(segment, op).op;
  for (TensorId output : done.outputs) {
    const Tensor& tensor = program.program.tensor(output);
    if (output == program.program.step.gradients || output == program.program.step.agree) continue;
    engine_.read_tensor(program_, output, bytes_, slot);
    const DType dtype = program.tensor(output).layout.dtype;
    if (first_not_finite(bytes_.data(), bytes_.size(), dtype) < 0) continue;
    found_.name = tensor.name;
    found_.op = done.def->kind();
    found_.phase = name_of(phase, program.segment(segment).variant);
    found_.sample = sample_of(program.program, tensor, dtype);
    position_ = position_in_step(program, segment, op, rank_);
    return;
  }
}

// The first sample whose values are not finite. Activations hold the samples of a micro-batch one after the other, in
// every layout. Samples that cannot be read have no values of their own.
std::optional<std::int64_t> NotFiniteSearch::sample_of(const Program& program, const Tensor& tensor,
                                                       DType dtype) const {
  const std::int64_t first = follower_.item(program).micro_batch * program.micro_batch_samples;
  const std::int64_t rows = tensor.type.shape.rank() > 0 ? tensor.type.shape[0] : 0;
  const bool by_sample = tensor.role == Role::activation && first >= 0 &&
                         (rows == program.micro_batch_samples || rows == program.rest_samples);
  if (!by_sample || rows == 0 || std::ssize(bytes_) % rows != 0) return {};
  const std::int64_t count = std::min(rows, std::ssize(samples_) - first);
  const std::size_t bytes = bytes_.size() / static_cast<std::size_t>(rows);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t sample = samples_[static_cast<std::size_t>(first + i)];
    if (sample < 0 || first_not_finite(bytes_.data() + static_cast<std::size_t>(i) * bytes, bytes, dtype) < 0) continue;
    return sample;
  }
  return {};
}

}  // namespace trainctl
