// Prepares an engine for its steps: allocates memory and step buffers, and binds kernels and each program's work.
#include <algorithm>

#include "core/exec/copy_schedule.h"
#include "core/exec/engine_parts.h"
#include "core/exec/named_tensors.h"

namespace trainctl {
namespace {

StepPhase step_phase_of(Phase phase) {
  switch (phase) {
    case Phase::count:
    case Phase::forward:
      return StepPhase::forward;
    case Phase::backward:
      return StepPhase::backward;
    case Phase::exchange:
      return StepPhase::communication;
    default:
      return StepPhase::update;
  }
}

}  // namespace

Engine::Engine(Backend& backend, const MeshCommunicators& communicators, Compiled compiled)
    : backend_(backend),
      communicators_(communicators),
      programs_(std::move(compiled.programs)),
      plan_(std::move(compiled.memory)),
      fresh_copies_(programs_),
      compute_(backend.compute_stream()) {
  if (backend_.asynchronous()) copies_ = backend_.asynchronous_stream();
  collectives_ = std::make_unique<CollectiveBinder>(backend_, communicators_, programs_);
  Communicator* data = communicators_.find(MeshAxis::data);
  const ParameterLayout& layout = programs_.front().program.flat;
  for (int i = 0; i < region_count; ++i) {
    const auto region = static_cast<Region>(i);
    const std::int64_t bytes = plan_.of(region);
    const bool is_arena = region == Region::slot;  // its size may differ by rank and may be 0
    const bool communicates =
        data != nullptr && is_exchanged(region, layout, backend_.on_host()) && (is_arena || bytes > 0);
    regions_.push_back(communicates ? data->allocate(bytes) : bytes > 0 ? backend_.allocate(bytes) : Memory{});
  }
  clear_caches();
  make_step_buffers();
  for (int program = 0; program < static_cast<int>(programs_.size()); ++program) bind(program);
  name_tensors();
}

Address Engine::address(int program, TensorId tensor) const {
  const PlacedTensor& at = programs_[static_cast<std::size_t>(program)].tensor(tensor);
  if (at.region == Region::slot) return {nullptr, at.offset};
  return {base(at.region), at.offset};
}

// Rows of a cache that no step has written yet are multiplied by 0, and must not be NaN.
void Engine::clear_caches() {
  const std::int64_t bytes = plan_.of(Region::caches);
  if (bytes == 0) return;
  constexpr std::int64_t most_at_once = 1 << 20;
  const std::vector<std::byte> zeros(static_cast<std::size_t>(std::min(bytes, most_at_once)));
  for (std::int64_t done = 0; done < bytes; done += std::ssize(zeros)) {
    backend_.copy(base(Region::caches) + done, zeros.data(), std::min(std::ssize(zeros), bytes - done), *compute_);
  }
  compute_->synchronize();
}

// Makes two buffers if a step is prepared while another runs, else one.
void Engine::make_step_buffers() {
  const std::int64_t sums = plan_.of(Region::gradients) - plan_.sums;
  const int count = traits_of(backend_).step_buffers();
  for (int i = 0; i < count; ++i) {
    auto buffers = std::make_unique<StepBuffers>();
    buffers->host = backend_.allocate_host(plan_.staging.bytes);
    if (plan_.of(Region::batches) > 0) buffers->device = base(Region::batches) + i * plan_.staging.bytes;
    buffers->results = backend_.allocate_host(plan_.of(Region::scalars) + sums);
    buffers->staged = backend_.event();
    buffers->done = backend_.event();
    buffers->sources.resize(plan_.staging.offsets.size());
    step_buffers_.push_back(std::move(buffers));
  }
}

void Engine::bind(int program) {
  const PlacedProgram& placed = programs_[static_cast<std::size_t>(program)];
  auto bound = std::make_unique<Bound>();
  bound->trains = placed.program.step.learning_rate != no_tensor;
  bound->work = std::make_unique<StepWork>(backend_, *compute_, threads_, placed,
                                           static_cast<int>(step_buffers_.size()), communicators_);
  StepUnit scalars;
  scalars.to = base(Region::scalars);
  scalars.bytes = plan_.of(Region::scalars);
  bound->work->add(scalars);
  // Streams that run at the same time have kernels of their own, since a running kernel keeps state such as the
  // addresses in its slot.
  const auto units_of = [&](int stream, int segment) -> const std::vector<StepUnit>& {
    const auto [entry, added] = bound->segments.try_emplace({stream, segment});
    if (added) entry->second = bind_segment(program, segment, *bound);
    return entry->second;
  };
  units_of(0, placed.copies_segment);
  bound->prepares = begins_with_prepare(placed);
  for (const ScheduleItem& item : schedule_with_copies(placed, backend_.updates_copies())) {
    if (item.waits) bound->work->wait_for_all();
    bind_batch(program, item, *bound);
    for (StepUnit unit : units_of(item.stream, item.segment)) {
      unit.slot = slot(item.slot);
      unit.stream = item.stream;
      bound->work->add(unit);
    }
  }
  for (const auto& buffers : step_buffers_) bound->results.push_back(results_of(program, *buffers));
  bound->work->complete([this, &results = bound->results](int buffer) {
    backend_.copy_all(results[static_cast<std::size_t>(buffer)], *compute_);
  });
  bound_.push_back(std::move(bound));
}

// The copies of the results that the host reads. Each copy covers whole blocks of 64 bytes, and neighbouring results
// share one copy.
std::vector<CopyRange> Engine::results_of(int program, const StepBuffers& buffers) const {
  const PlacedProgram& placed = programs_[static_cast<std::size_t>(program)];
  const StepTensors& step = placed.program.step;
  std::vector<TensorId> read{step.count, step.gradient_norm, step.agree};
  read.insert(read.end(), step.losses.begin(), step.losses.end());
  read.insert(read.end(), step.metrics.begin(), step.metrics.end());
  for (const PlayerUpdate& update : step.players) read.insert(read.end(), {update.agree, update.gradient_norm});
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // first byte and end of each range in the results' memory
  const std::int64_t tail = plan_.sums;
  const std::int64_t scalars = plan_.of(Region::scalars);
  const auto rounded = [](std::int64_t bytes) { return bytes / 64 * 64; };
  for (TensorId id : read) {
    if (id == no_tensor) continue;
    const PlacedTensor& at = placed.tensor(id);
    const bool is_scalar = at.region == Region::scalars;
    const std::int64_t first = is_scalar ? at.offset : scalars + at.offset - tail;
    const std::int64_t begin = is_scalar ? 0 : scalars;
    const std::int64_t end = is_scalar ? scalars : buffers.results.bytes;
    const std::int64_t bytes = placed.program.tensor(id).type.bytes();
    ranges.emplace_back(begin + rounded(first - begin), std::min(end, begin + rounded(first - begin + bytes + 63)));
  }
  std::sort(ranges.begin(), ranges.end());
  std::vector<CopyRange> copies;
  std::int64_t copied = 0;
  for (const auto& [first, end] : ranges) {
    const std::int64_t begin = std::max(first, copied);
    if (begin >= end) continue;
    std::byte* from =
        begin < scalars ? base(Region::scalars) + begin : base(Region::gradients) + tail + begin - scalars;
    const bool extends_last = !copies.empty() && begin == copied && begin != scalars;
    if (extends_last) {
      copies.back().bytes += end - begin;
    } else {
      copies.push_back({buffers.results.get() + begin, from, end - begin});
    }
    copied = end;
  }
  return copies;
}

// Adds the copies of a micro-batch's range of the batch to its slot; they run before its positions are counted, and
// before the forward pass.
void Engine::bind_batch(int program, const ScheduleItem& item, Bound& bound) {
  const PlacedProgram& placed = programs_[static_cast<std::size_t>(program)];
  const Program& described = placed.program;
  const Phase phase = placed.segment(item.segment).phase;
  if ((phase != Phase::forward && phase != Phase::count) || item.micro_batch < 0) return;
  const BatchTensors& batch = described.batch_of(item);
  for (std::size_t number = 1; number < source_count(batch); ++number) {
    const TensorId id = part_at(batch, number);
    if (id == no_tensor) continue;
    StepUnit unit;
    unit.source = number;
    unit.bytes = described.tensor(id).type.bytes();
    unit.from = item.micro_batch * described.tensor(part_at(described.batch, number)).type.bytes();
    unit.to = address(program, id).at(slot(item.slot));
    unit.stream = item.stream;
    bound.work->add(unit);
  }
}

// Returns null for an op that does not run.
std::unique_ptr<Kernel> Engine::bind_op(int program, const PlacedOp& placed) {
  const Op& op = placed.op;
  if (op.def->trait() == OpTrait::alias) return nullptr;
  Binding binding;
  for (TensorId id : op.inputs) binding.inputs.push_back(address(program, id));
  for (TensorId id : op.outputs) binding.outputs.push_back(address(program, id));
  binding.workspace = {nullptr, std::max<std::int64_t>(placed.workspace, 0)};
  const bool communicates = op.def->trait() == OpTrait::collective;
  return communicates ? collectives_->bind(programs_[static_cast<std::size_t>(program)], op, binding)
                      : placed.lowering.bind(binding);
}

std::vector<StepUnit> Engine::bind_segment(int program, int number, Bound& bound) {
  const PlacedSegment& segment = programs_[static_cast<std::size_t>(program)].segment(number);
  std::vector<StepUnit> units;
  for (std::size_t o = 0; o < segment.ops.size(); ++o) {
    const PlacedOp& op = segment.ops[o];
    std::unique_ptr<Kernel> kernel = bind_op(program, op);
    if (kernel == nullptr) continue;
    const bool communicates = op.op.def->trait() == OpTrait::collective;
    StepUnit unit;
    unit.kernel = kernel.get();
    unit.phase = communicates ? StepPhase::communication : step_phase_of(segment.phase);
    unit.recordable = !communicates || collectives_->recordable(programs_[static_cast<std::size_t>(program)], op.op);
    unit.slot = slot(0);
    unit.segment = number;
    unit.op = static_cast<int>(o);
    units.push_back(unit);
    bound.kernels.push_back(std::move(kernel));
  }
  return units;
}

void Engine::name_tensors() {
  const Program& program = programs_.front().program;
  const ParameterLayout& flat = program.flat;
  if (!backend_.on_host()) {
    std::int64_t bytes = 0;
    for (Region region : kept_regions) bytes += plan_.of(region);
    host_.resize(static_cast<std::size_t>(bytes / size_of(DType::float32)));
  }
  const bool states = plan_.of(Region::states) > 0, averages = plan_.of(Region::averages) > 0;
  float* parameters = kept(Region::parameters);
  weights_ = name_weights(program, averages ? kept(Region::averages) : parameters,
                          parameters + flat.local_count(Quantity::parameters), kept(Region::statistics));
  if (states || averages)
    state_ = name_state(program, states ? kept(Region::states) : nullptr, averages ? parameters : nullptr);
}

}  // namespace trainctl
