// Searches for the first tensor that holds a NaN or Inf.
#include "core/exec/observe/not_finite.h"

#include <algorithm>
#include <cstring>

#include "core/backend/choices.h"
#include "core/backend/single_op.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/exec/observe/position_in_step.h"
#include "core/exec/observe/tensor_words.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/graph/ops/row_group.h"

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

// The name of the tensor that holds element `element` of an output: of a bucket's parameter, say. A shard of parameters
// that is rounded to bfloat16 is named like the shard.
std::string name_of_output(const Program& program, const Op& op, TensorId output, std::int64_t element) {
  std::string name = name_of_element(program, output, element);
  if (op.get_if<Cast>() == nullptr || name != program.tensor(output).name) return name;
  std::string rounded = name_of_element(program, op.inputs[0], element);
  return rounded != program.tensor(op.inputs[0]).name ? rounded : name;
}

// The bits of the largest absolute value, without its sign: they are ordered like the values.
std::uint32_t largest_magnitude(const std::byte* bytes, std::size_t count, DType dtype) {
  const std::size_t size = static_cast<std::size_t>(size_of(dtype));
  std::uint32_t largest = 0;
  for (std::size_t at = 0; at + size <= count; at += size) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes + at, size);
    largest = std::max(largest, bits & (size == 4 ? 0x7FFFFFFFu : 0x7FFFu));
  }
  return largest;
}

}  // namespace

std::string to_text(const NotFiniteTensor& tensor) {
  if (tensor.name.empty()) return "";
  const std::string named =
      tensor.words.empty() ? format("'{}'", tensor.name) : format("{} ('{}')", tensor.words, tensor.name);
  std::string text = tensor.is_within ? format("a value inside of layer '{}', computed by {} in {}", tensor.name,
                                               tensor.op, tensor.phase)
                                      : format("{}, written by {} in {}", named, tensor.op, tensor.phase);
  if (tensor.sample) {
    text +=
        format("{} {} of the data",
               tensor.sample_was_read ? ", which read its largest value for sample" : ", for sample", *tensor.sample);
  }
  if (tensor.rank >= 0) text += format(" (rank {})", tensor.rank);
  return text;
}

Json to_json(const NotFiniteTensor& tensor) {
  return {{"tensor", tensor.name},
          {"words", tensor.words},
          {"op", tensor.op},
          {"phase", tensor.phase},
          {"sample", tensor.sample ? Json(*tensor.sample) : Json()},
          {"sample_was_read", tensor.sample_was_read},
          {"is_within", tensor.is_within},
          {"rank", tensor.rank}};
}

NotFiniteTensor not_finite_tensor(const Json& json) {
  NotFiniteTensor found{
      .name = json.at("tensor"), .words = json.at("words"), .op = json.at("op"), .phase = json.at("phase")};
  if (const Json& sample = json.at("sample"); !sample.is_null()) found.sample = sample.get<std::int64_t>();
  found.sample_was_read = json.at("sample_was_read");
  found.is_within = json.at("is_within");
  found.rank = json.at("rank");
  return found;
}

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
      if (first_not_finite(values[number].data(), values[number].size(), types[number].dtype) >= 0) {
        return std::string(sub.def->kind());
      }
    }
  }
  return "";
}

void NotFiniteSearch::ran(const PlacedProgram& program, int segment, int op, int slot, double, double) {
  if (segment == program.copies_segment) return;
  follower_.follow(program.program, segment, op, slot);
  const Phase phase = program.segment(segment).phase;
  if (!found_.name.empty() || phase == Phase::exchange) return;
  const Op& done = program.op(segment, op).op;
  if (done.get_if<RowGroup>() != nullptr) {
    const std::string kind = kind_within(done, program, slot);
    if (!kind.empty()) {
      found_ = {.name = done.name, .op = kind, .is_within = true};
      return note_place(program, segment, op);
    }
  }
  for (TensorId output : done.outputs) {
    const Tensor& tensor = program.program.tensor(output);
    if (output == program.program.step.gradients || output == program.program.step.agree) continue;
    engine_.read_tensor(program_, output, bytes_, slot);
    const DType dtype = program.tensor(output).layout.dtype;
    const std::ptrdiff_t first = first_not_finite(bytes_.data(), bytes_.size(), dtype);
    if (first < 0) continue;
    found_.name = name_of_output(program.program, done, output, first / size_of(dtype));
    found_.words = tensor_words(program.program, found_.name, done.name);
    found_.op = done.def->kind();
    found_.sample = sample_of(program.program, tensor, dtype);
    if (!found_.sample && !samples_.empty()) {
      found_.sample = largest_sample_read(program, done, slot);
      found_.sample_was_read = found_.sample.has_value();
    }
    return note_place(program, segment, op);
  }
}

void NotFiniteSearch::note_place(const PlacedProgram& program, int segment, int op) {
  const PlacedSegment& of = program.segment(segment);
  found_.phase = name_of(of.phase, of.variant);
  // Ranks with other micro-batches may number their segments differently: the phase comes first.
  constexpr double max_segments = 1e6;
  position_ = max_segments * static_cast<double>(of.phase) + position_in_step(program, segment, op, rank_);
}

// Where bytes_ hold the values of each sample of the micro-batch, one after the other, as activations and inputs do in
// every layout; empty for other tensors.
std::optional<NotFiniteSearch::Rows> NotFiniteSearch::rows_of(const Program& program, const Tensor& tensor) const {
  const std::int64_t first = follower_.item(program).micro_batch * program.micro_batch_samples;
  const std::int64_t rows = tensor.type.shape.rank() > 0 ? tensor.type.shape[0] : 0;
  const bool by_sample = (tensor.role == Role::activation || tensor.role == Role::input) && first >= 0 &&
                         (rows == program.micro_batch_samples || rows == program.rest_samples);
  if (!by_sample || rows == 0 || std::ssize(bytes_) % rows != 0 || first >= std::ssize(samples_)) return {};
  return Rows{samples_.data() + first, static_cast<std::size_t>(std::min(rows, std::ssize(samples_) - first)),
              bytes_.size() / static_cast<std::size_t>(rows)};
}

// The first sample whose values are not finite. Samples that cannot be read have no values of their own.
std::optional<std::int64_t> NotFiniteSearch::sample_of(const Program& program, const Tensor& tensor,
                                                       DType dtype) const {
  const std::optional<Rows> rows = rows_of(program, tensor);
  for (std::size_t i = 0; rows && i < rows->count; ++i) {
    if (rows->samples[i] < 0 || first_not_finite(bytes_.data() + i * rows->bytes, rows->bytes, dtype) < 0) continue;
    return rows->samples[i];
  }
  return {};
}

// The sample with the largest absolute value in the op's inputs.
std::optional<std::int64_t> NotFiniteSearch::largest_sample_read(const PlacedProgram& program, const Op& op, int slot) {
  std::optional<std::int64_t> sample;
  std::uint32_t largest = 0;
  for (const TensorId input : op.inputs) {
    const DType dtype = program.tensor(input).layout.dtype;
    if (dtype != DType::float32 && dtype != DType::bfloat16 && dtype != DType::float16) continue;
    engine_.read_tensor(program_, input, bytes_, slot);
    const std::optional<Rows> rows = rows_of(program.program, program.program.tensor(input));
    for (std::size_t i = 0; rows && i < rows->count; ++i) {
      const std::uint32_t own = largest_magnitude(bytes_.data() + i * rows->bytes, rows->bytes, dtype);
      if (rows->samples[i] < 0 || (sample && own <= largest)) continue;
      largest = own;
      sample = rows->samples[i];
    }
  }
  return sample;
}

}  // namespace trainctl
