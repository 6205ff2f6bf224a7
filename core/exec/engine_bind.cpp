// What an engine makes once: its memory, bound kernels, each program's work, and the buffers of steps.
#include <algorithm>

#include "core/exec/engine_parts.h"
#include "core/exec/named_tensors.h"
#include "core/graph/ops/update.h"

namespace trainctl {
namespace {

// Highest bucket number of all programs, plus one; and whether a reduction stands outside the update, so that it
// overlaps.
struct Buckets {
  int count = 0;
  bool overlap = false;
};

Buckets buckets_of(const std::vector<LoweredProgram>& programs) {
  Buckets buckets;
  for (const LoweredProgram& lowered : programs) {
    for (const Segment& segment : lowered.program.segments) {
      for (const Op& op : segment.ops) {
        const auto* reduce = op.get_if<AllReduce>();
        if (reduce == nullptr) continue;
        buckets.count = std::max(buckets.count, reduce->bucket + 1);
        buckets.overlap = buckets.overlap || segment.phase != Phase::update;
      }
    }
  }
  return buckets;
}

StepPart part_of(const Segment& segment) {
  if (segment.phase == Phase::forward) return StepPart::forward;
  return segment.phase == Phase::backward ? StepPart::backward : StepPart::update;
}

}  // namespace

Engine::Engine(Backend& backend, Communicator& communicator, std::vector<LoweredProgram> programs)
    : backend_(backend),
      communicator_(communicator),
      programs_(std::move(programs)),
      plan_(plan_memory(programs_, backend)),
      fresh_copies_(programs_, plan_),
      compute_(backend.compute_stream()) {
  const Buckets buckets = buckets_of(programs_);
  if (buckets.overlap) communication_ = backend_.asynchronous_stream();
  if (backend_.asynchronous()) copies_ = backend_.asynchronous_stream();
  collectives_ = std::make_unique<CollectiveStreams>(backend_, communicator_,
                                                     communication_ ? *communication_ : *compute_, buckets.count);
  for (int region = 0; region < region_count; ++region) {
    const std::int64_t bytes = plan_.bytes[static_cast<std::size_t>(region)];
    const bool reduced = static_cast<Region>(region) == Region::gradients;
    regions_.push_back(bytes == 0 ? Memory{} : reduced ? communicator_.allocate(bytes) : backend_.allocate(bytes));
  }
  make_step_buffers();
  for (int program = 0; program < static_cast<int>(programs_.size()); ++program) bind(program);
  name_tensors();
}

Address Engine::address(int program, TensorId tensor) const {
  const Location& location =
      plan_.programs[static_cast<std::size_t>(program)].tensors[static_cast<std::size_t>(tensor)];
  if (location.region == Region::slot) return {nullptr, location.offset};
  return {base(location.region), location.offset};
}

// Two where a step is prepared while another runs.
void Engine::make_step_buffers() {
  const FlatLayout& flat = programs_.front().program.flat;
  const std::int64_t sums = (flat.gradient_count - flat.trainable_count) * size_of(DType::float32);
  const int count = step_buffers_of(backend_);
  for (int i = 0; i < count; ++i) {
    auto buffers = std::make_unique<StepBuffers>();
    buffers->host = backend_.allocate_host(plan_.staging.bytes);
    if (plan_.of(Region::batches) > 0) buffers->device = base(Region::batches) + i * plan_.staging.bytes;
    buffers->results = backend_.allocate_host(plan_.of(Region::scalars) + sums);
    buffers->staged = backend_.event();
    buffers->done = backend_.event();
    step_buffers_.push_back(std::move(buffers));
  }
}

void Engine::bind(int program) {
  const LoweredProgram& lowered = programs_[static_cast<std::size_t>(program)];
  auto bound = std::make_unique<Bound>();
  bound->trains = lowered.program.step.learning_rate != no_tensor;
  for (std::size_t segment = 0; segment < lowered.program.segments.size(); ++segment) {
    auto& kernels = bound->kernels.emplace_back();
    for (std::size_t op = 0; op < lowered.program.segments[segment].ops.size(); ++op) {
      kernels.push_back(bind_op(program, segment, op));
    }
  }
  bound->work = std::make_unique<StepWork>(backend_, *compute_, lowered, static_cast<int>(step_buffers_.size()),
                                           communicator_.size() > 1);
  StepUnit scalars;
  scalars.to = base(Region::scalars);
  scalars.bytes = plan_.of(Region::scalars);
  bound->work->add(scalars);
  bound->copies = units_of(program, lowered.copies_segment, slot(0), *bound);
  if (bound->trains && !backend_.updates_copies()) {
    for (const StepUnit& unit : bound->copies) bound->work->add(unit);
  }
  for (const ScheduleItem& item : lowered.program.schedule) {
    bind_batch(program, item, *bound);
    for (const StepUnit& unit : units_of(program, item.segment, slot(item.slot), *bound)) bound->work->add(unit);
  }
  for (const auto& buffers : step_buffers_) bound->results.push_back(results_of(program, *buffers));
  bound->work->complete([this, &results = bound->results](int buffer) {
    backend_.copy_all(results[static_cast<std::size_t>(buffer)], *compute_);
  });
  bound_.push_back(std::move(bound));
}

// What the host reads of a step: each value with its neighbours of the same 64 bytes, and one copy for all in a row.
std::vector<CopyPart> Engine::results_of(int program, const StepBuffers& buffers) const {
  const StepTensors& step = programs_[static_cast<std::size_t>(program)].program.step;
  std::vector<TensorId> read{step.count, step.loss, step.gradient_norm, step.agree};
  read.insert(read.end(), step.metrics.begin(), step.metrics.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // of the results: first byte, end
  const std::int64_t tail = programs_.front().program.flat.trainable_count * size_of(DType::float32);
  const std::int64_t scalars = plan_.of(Region::scalars);
  const auto rounded = [](std::int64_t bytes) { return bytes / 64 * 64; };
  for (TensorId id : read) {
    if (id == no_tensor) continue;
    const Location& at = plan_.programs[static_cast<std::size_t>(program)].tensors[static_cast<std::size_t>(id)];
    const bool is_scalar = at.region == Region::scalars;
    const std::int64_t first = is_scalar ? at.offset : scalars + at.offset - tail;
    const std::int64_t begin = is_scalar ? 0 : scalars;
    const std::int64_t end = is_scalar ? scalars : buffers.results.bytes;
    const std::int64_t bytes = programs_[static_cast<std::size_t>(program)].program.tensor(id).type.bytes();
    ranges.emplace_back(begin + rounded(first - begin), std::min(end, begin + rounded(first - begin + bytes + 63)));
  }
  std::sort(ranges.begin(), ranges.end());
  std::vector<CopyPart> parts;
  std::int64_t copied = 0;
  for (const auto& [first, end] : ranges) {
    const std::int64_t begin = std::max(first, copied);
    if (begin >= end) continue;
    std::byte* from =
        begin < scalars ? base(Region::scalars) + begin : base(Region::gradients) + tail + begin - scalars;
    const bool goes_on = !parts.empty() && begin == copied && begin != scalars;
    if (goes_on) {
      parts.back().bytes += end - begin;
    } else {
      parts.push_back({buffers.results.get() + begin, from, end - begin});
    }
    copied = end;
  }
  return parts;
}

// A micro-batch's part of the batch goes to its slot before the forward pass.
void Engine::bind_batch(int program, const ScheduleItem& item, Bound& bound) {
  const Program& described = programs_[static_cast<std::size_t>(program)].program;
  if (described.segment(item.segment).phase != Phase::forward) return;
  const auto parts = batch_parts(described.batch);
  for (std::size_t i = 1; i < step_inputs; ++i) {
    if (parts[i] == no_tensor) continue;
    StepUnit unit;
    unit.source = static_cast<StepInputs>(i);
    unit.bytes = described.tensor(parts[i]).type.bytes();
    unit.from = item.micro_batch * unit.bytes;
    unit.to = address(program, parts[i]).at(slot(item.slot));
    bound.work->add(unit);
  }
}

std::unique_ptr<Kernel> Engine::bind_op(int program, std::size_t segment, std::size_t number) {
  const LoweredProgram& lowered = programs_[static_cast<std::size_t>(program)];
  const Op& op = lowered.program.segments[segment].ops[number];
  if (op.def->trait() == OpTrait::alias) return nullptr;
  if (op.def->trait() == OpTrait::collective) {
    const View gradients{base(Region::gradients), DType::float32, lowered.program.flat.gradient_count};
    return bind_collective(op, gradients, *collectives_);
  }
  Binding binding;
  for (TensorId id : op.inputs) binding.inputs.push_back(address(program, id));
  for (TensorId id : op.outputs) binding.outputs.push_back(address(program, id));
  const std::int64_t workspace = plan_.programs[static_cast<std::size_t>(program)].workspaces[segment][number];
  binding.workspace = {nullptr, std::max<std::int64_t>(workspace, 0)};
  return lowered.lowerings[segment][number].bind(binding);
}

// The segment's kernels as work in a slot.
std::vector<StepUnit> Engine::units_of(int program, int segment, const Slot& slot, const Bound& bound) const {
  const Segment& described = programs_[static_cast<std::size_t>(program)].program.segment(segment);
  std::vector<StepUnit> units;
  for (std::size_t o = 0; o < described.ops.size(); ++o) {
    StepUnit unit;
    unit.kernel = bound.kernels[static_cast<std::size_t>(segment)][o].get();
    if (unit.kernel == nullptr) continue;
    const bool communicates = described.ops[o].def->trait() == OpTrait::collective;
    unit.part = communicates ? StepPart::communication : part_of(described);
    unit.recordable = !communicates || communicator_.recordable();
    unit.slot = slot;
    unit.segment = segment;
    unit.op = static_cast<int>(o);
    units.push_back(unit);
  }
  return units;
}

void Engine::name_tensors() {
  const Program& program = programs_.front().program;
  const FlatLayout& flat = program.flat;
  const std::size_t states = flat.states.size();
  host_.resize(static_cast<std::size_t>(flat.parameter_count + flat.statistic_count +
                                        static_cast<std::int64_t>(states) * flat.trainable_count));
  float* parameters = host_.data();
  float* statistics = parameters + flat.parameter_count;
  weights_ = name_weights(program, parameters, statistics);
  state_ = name_state(program, statistics + flat.statistic_count);
}

}  // namespace trainctl
