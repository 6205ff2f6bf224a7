// Records, writes and reads the trace of a step.
#include "core/exec/observe/step_trace.h"

#include <algorithm>
#include <cstring>

#include "core/backend/choices.h"
#include "core/backend/single_op.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/log.h"
#include "core/exec/observe/position_in_step.h"
#include "core/exec/observe/step_gradients.h"
#include "core/graph/ops/reshaping/shaping.h"

namespace trainctl {
namespace {

bool is_real(DType dtype) { return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16; }

std::vector<float> reordered(Backend& backend, const TensorType& type, const Layout& layout,
                             const std::vector<std::byte>& bytes) {
  const std::int64_t count = type.shape.count(), size = count * size_of(DType::float32);
  SingleOp reorder(std::make_shared<Reorder>(Layout{DType::float32, "", size}), {type}, "logical values", {});
  reorder.present[0] = layout;
  KernelChoices choices;
  choices.stop_timing();
  const Lowering lowering = backend.lower(reorder.op, reorder.program, reorder.present, choices);
  const Memory from = backend.allocate(static_cast<std::int64_t>(bytes.size())), to = backend.allocate(size);
  const Memory workspace = lowering.workspace_bytes > 0 ? backend.allocate(lowering.workspace_bytes) : Memory{};
  const auto kernel = lowering.bind({{{from.get(), 0}}, {{to.get(), 0}}, {workspace.get(), 0}});
  const auto stream = backend.compute_stream();
  std::vector<float> values(static_cast<std::size_t>(count));
  backend.copy(from.get(), bytes.data(), static_cast<std::int64_t>(bytes.size()), *stream);
  kernel->run(*stream, Slot{});
  backend.copy(values.data(), to.get(), size, *stream);
  stream->synchronize();
  return values;
}

// Returns the tensor as float32 in logical layout, from the bytes of Engine::read_tensor(). Empty if its elements are
// whole numbers, or if the backend cannot reorder its layout to the logical one.
std::optional<std::vector<float>> logical_values(Backend& backend, const TensorType& type, const Layout& layout,
                                                 const std::vector<std::byte>& bytes) {
  if (!is_real(type.dtype) || !is_real(layout.dtype)) return {};
  if (layout.format.empty() && layout.dtype == DType::float32) {
    std::vector<float> values(static_cast<std::size_t>(type.shape.count()));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }
  try {
    return reordered(backend, type, layout, bytes);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::resource) throw;
    log::debug(error.what());
    return {};
  }
}

std::uint64_t hash_of(const float* values, std::size_t count) { return xxh3(values, count * sizeof(float)); }

}  // namespace

std::string to_text(const std::vector<TraceRecord>& records) {
  std::string text;
  for (const TraceRecord& record : records) {
    text += json_line({{"place", record.position},
                       {"segment", record.segment},
                       {"op", record.op},
                       {"tensor", record.tensor},
                       {"write", record.write},
                       {"samples", record.samples},
                       {"hash", record.hash},
                       {"sample_hash", record.sample_hash},
                       {"values", record.values.size()}});
    text.append(reinterpret_cast<const char*>(record.values.data()), record.values.size() * sizeof(float));
  }
  return text;
}

std::vector<TraceRecord> parse_trace(std::string_view text) {
  std::vector<TraceRecord> records;
  while (!text.empty()) {
    const std::size_t line = text.find('\n');
    const Json json = try_parse_json(text.substr(0, line));
    if (line == std::string_view::npos || json.is_discarded()) {
      throw Error(ErrorKind::data, "the trace of a step is damaged");
    }
    text.remove_prefix(line + 1);
    TraceRecord record{json.at("place").get<double>(),
                       json.at("segment").get<std::string>(),
                       json.at("op").get<std::string>(),
                       json.at("tensor").get<std::string>(),
                       json.at("write").get<int>(),
                       json.at("samples").get<std::vector<std::int64_t>>(),
                       json.at("hash").get<std::uint64_t>(),
                       json.at("sample_hash").get<std::vector<std::uint64_t>>(),
                       {}};
    const auto count = json.at("values").get<std::size_t>();
    if (count > text.size() / sizeof(float)) throw Error(ErrorKind::data, "the trace of a step is cut off");
    record.values.resize(count);
    if (count > 0) std::memcpy(record.values.data(), text.data(), count * sizeof(float));
    text.remove_prefix(count * sizeof(float));
    records.push_back(std::move(record));
  }
  return records;
}

void StepTrace::set_samples(const Batch& batch) {
  const auto* first = batch.samples.as<std::int64_t>();
  samples_.assign(first, first + batch.count);
}

void StepTrace::ran(const PlacedProgram& placed, int segment, int op, int slot, double, double) {
  if (segment == placed.copies_segment) return;
  if (program_ < 0) {
    program_ = 0;
    while (&engine_.program(program_) != &placed) ++program_;
  }
  const ScheduleItem& item = follower_.follow(placed.program, segment, op, slot);
  const Phase phase = placed.segment(segment).phase;
  const bool counts = phase == Phase::forward || phase == Phase::backward;
  const Op& done = placed.op(segment, op).op;
  if (!counts || done.def->trait() == OpTrait::collective || item.micro_batch < 0) return;
  for (const TensorId output : done.outputs) record(placed, segment, op, output, slot);
}

// Whether dimension 0 has an entry for each of `samples` samples. If several ranks have samples, the placement decides.
bool StepTrace::is_by_sample(const Tensor& tensor, std::size_t samples) const {
  if (tensor.role != Role::activation) return false;
  const Shape& shape = tensor.type.shape;
  const auto count = static_cast<std::int64_t>(samples);
  if (shape.rank() == 0 || count == 0 || shape[0] % count != 0) return false;
  const auto data = static_cast<std::size_t>(MeshAxis::data);
  const bool placed = rank_.size(MeshAxis::data) > 1 && data < tensor.placements.size();
  return placed ? tensor.placements[data] == split_along(0) : shape[0] == count;
}

// The samples of the micro-batch or, for a gradient that micro-batches add to, all samples that were added so far.
std::vector<std::int64_t> StepTrace::samples_of(const Program& program, const Tensor& tensor, Phase phase) {
  const auto all_samples = std::ssize(samples_);
  const std::int64_t first = follower_.item(program).micro_batch * program.micro_batch_samples;
  const std::int64_t end = std::min(first + program.micro_batch_samples, all_samples);
  require(first <= end, "a micro-batch begins after the end of the batch");
  std::vector<std::int64_t> samples(samples_.begin() + first, samples_.begin() + end);
  if (phase != Phase::backward || tensor.role != Role::gradient || program.flat.shares(Quantity::gradients))
    return samples;
  const bool overwrites = program.segment(follower_.item(program).segment).variant == Variant::first;
  std::vector<std::int64_t>& all = gradient_samples_[tensor.name];
  if (overwrites) all.clear();
  all.insert(all.end(), samples.begin(), samples.end());
  return all;
}

void StepTrace::record(const PlacedProgram& placed, int segment, int op, TensorId output, int slot) {
  const Program& program = placed.program;
  const Tensor& tensor = program.tensor(output);
  const Phase phase = placed.segment(segment).phase;
  const auto along_tensor = static_cast<std::size_t>(MeshAxis::tensor);
  const bool is_sharded =
      tensor.shard || (along_tensor < tensor.placements.size() && tensor.placements[along_tensor] != replicated);
  const auto is_gradient = [&](const FlatEntry& entry) { return entry.gradient == output; };
  const std::vector<FlatEntry>& parameters = program.flat.parameters;
  const bool compared = tensor.role == Role::gradient ? std::any_of(parameters.begin(), parameters.end(), is_gradient)
                                                      : tensor.role == Role::activation;
  if (!compared || is_sharded || !tensor.members.empty() || (!wanted_.empty() && tensor.name != wanted_)) return;
  engine_.read_tensor(program_, output, bytes_, slot);
  std::optional<std::vector<float>> values =
      logical_values(backend_, tensor.type, placed.tensor(output).layout, bytes_);
  if (!values) return;
  TraceRecord record;
  record.position = position_in_step(placed, segment, op, rank_);
  record.segment = name_of(phase, Variant::first);
  record.op = placed.op(segment, op).op.def->kind();
  record.tensor = tensor.name;
  record.write = writes_[{tensor.name, phase, follower_.item(program).micro_batch}]++;
  record.samples = samples_of(program, tensor, phase);
  record.hash = hash_of(values->data(), values->size());
  if (is_by_sample(tensor, record.samples.size())) {
    const std::size_t count = values->size() / record.samples.size();
    for (std::size_t i = 0; i < record.samples.size(); ++i) {
      record.sample_hash.push_back(hash_of(values->data() + i * count, count));
    }
  }
  if (!wanted_.empty()) record.values = std::move(*values);
  records_.push_back(std::move(record));
}

std::vector<NamedTensor> StepTrace::read_gradients(std::vector<float>& memory) {
  return program_ < 0 ? std::vector<NamedTensor>() : trainctl::read_gradients(engine_, program_, memory);
}

}  // namespace trainctl
