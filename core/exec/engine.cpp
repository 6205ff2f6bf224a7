// Engine: copies a step's values to the device, runs the step and reads its results. engine_bind.cpp allocates and
// binds.
#include "core/exec/engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/format.h"
#include "core/compile/step_inputs.h"
#include "core/exec/engine_parts.h"
#include "core/graph/ops/training/update.h"

namespace trainctl {
namespace {

// From this many bytes on, inputs are copied to the device from the batch's own memory: a copy to the staging buffer
// would take the host longer than waiting for the device's copy.
constexpr std::int64_t direct_bytes = 256 << 10;

// The bytes of one step's inputs, all micro-batches together.
std::int64_t bytes_of_inputs(const Program& program) {
  std::int64_t bytes = 0;
  for (std::size_t number = 1; number <= program.batch.inputs.size(); ++number) bytes += part_bytes(program, number);
  return bytes;
}

}  // namespace

Engine::~Engine() {
  // After an error, work that is still queued uses the memory: wait for it.
  std::vector<Stream*> streams{copies_.get(), compute_.get()};
  for (Stream* stream : collectives_->streams()) streams.push_back(stream);
  for (Stream* stream : streams) {
    if (stream == nullptr || under_way_ == 0) continue;
    try {
      stream->synchronize();
    } catch (const std::exception&) {  // the error that ends the run is reported elsewhere
    }
  }
}

// The values of a kept region that weights() and state() view.
float* Engine::kept(Region region) {
  if (backend_.on_host()) return reinterpret_cast<float*>(base(region));
  float* values = host_.data();
  for (Region before : kept_regions) {
    if (before == region) break;
    values += plan_.of(before) / size_of(DType::float32);
  }
  return values;
}

void Engine::download() {
  for (Region region : kept_regions) {
    if (!backend_.on_host()) backend_.copy(kept(region), base(region), plan_.of(region), *compute_);
  }
  compute_->synchronize();
}

// The engine keeps the memory until its end. Freeing page-locked memory waits for all kernels, even for one that waits
// for a lost peer; the end of the engine aborts such kernels first.
Memory Engine::allocate_host(std::int64_t bytes) { return host_memory_.emplace_back(backend_.allocate_host(bytes)); }

void Engine::copy(std::span<const NamedTensor> tensors, std::byte* to) {
  for (const NamedTensor& tensor : tensors) {
    backend_.copy(to, on_device(tensor.view.as<float>()), tensor.view.bytes(), *compute_);
    to += tensor.view.bytes();
  }
  compute_->synchronize();
}

// Returns the device's address of a value that weights() and state() view at this address.
const std::byte* Engine::on_device(const float* on_host) const {
  if (backend_.on_host()) return reinterpret_cast<const std::byte*>(on_host);
  std::int64_t offset = (on_host - host_.data()) * size_of(DType::float32);
  for (Region region : kept_regions) {
    if (offset < plan_.of(region)) return base(region) + offset;
    offset -= plan_.of(region);
  }
  require(offset == 0, "a tensor is not in the memory of the engine's tensors");
  return nullptr;  // an empty tensor after all others
}

void Engine::upload() {
  for (Region region : kept_regions) {
    if (!backend_.on_host()) backend_.copy(base(region), kept(region), plan_.of(region), *compute_);
  }
  compute_->synchronize();
  fresh_copies_.changed();
}

void Engine::begin_at_weights() {
  const std::int64_t averages = plan_.of(Region::averages) / size_of(DType::float32);
  std::copy_n(kept(Region::averages), averages, kept(Region::parameters));
}

void Engine::read_tensor(int program, TensorId tensor, std::vector<std::byte>& bytes, int from_slot) {
  bytes.resize(static_cast<std::size_t>(programs_[static_cast<std::size_t>(program)].tensor(tensor).layout.bytes));
  backend_.copy(bytes.data(), address(program, tensor).at(slot(from_slot)), static_cast<std::int64_t>(bytes.size()),
                *compute_);
  compute_->synchronize();
}

template <class T>
void Engine::write_scalar(StepBuffers& buffers, int program, TensorId tensor, T value) {
  if (tensor == no_tensor) return;
  const PlacedTensor& at = programs_[static_cast<std::size_t>(program)].tensor(tensor);
  std::memcpy(buffers.host.get() + at.offset, &value, sizeof(T));
}

// Sets the sources of the step's copies. If the copies run on the compute stream, the sources are the batch in the
// caller's memory. Otherwise they are in the step's buffer on the device: large inputs are copied there from the
// batch's memory, the other tensors through the step's staging buffer on the host.
void Engine::stage_batch(StepBuffers& buffers, const Batch& batch) {
  const Program& program = programs_[static_cast<std::size_t>(buffers.program)].program;
  std::byte* const memory = buffers.device != nullptr ? buffers.device : buffers.host.get();
  buffers.sources[scalars_source] = memory;
  const std::size_t inputs = program.batch.inputs.size();
  buffers.direct = copies_ != nullptr && batch.host_memory && bytes_of_inputs(program) >= direct_bytes;
  std::int64_t bytes = plan_.of(Region::scalars);  // bytes of the staging buffer that are copied to the device
  for (std::size_t number = 1; number < source_count(program.batch); ++number) {
    const TensorId id = part_at(program.batch, number);
    if (id == no_tensor) continue;
    const View& view = part_at(batch, number);
    const std::int64_t size = part_bytes(program, number);
    require(view.dtype == program.tensor(id).type.dtype && size <= view.bytes(), "a batch does not fit its program");
    if (copies_ == nullptr) {
      buffers.sources[number] = static_cast<const std::byte*>(view.data);
      continue;
    }
    const std::int64_t offset = plan_.staging.offsets[number];
    buffers.sources[number] = memory + offset;
    if (buffers.direct && number <= inputs) {
      backend_.copy(buffers.device + offset, view.data, size, *copies_);
    } else {
      std::memcpy(buffers.host.get() + offset, view.data, static_cast<std::size_t>(size));
      bytes = std::max(bytes, offset + size);
    }
  }
  if (copies_ == nullptr) return;
  backend_.copy(buffers.device, buffers.host.get(), bytes, *copies_);
  buffers.staged->record(*copies_);
  buffers.staged->wait(*compute_);
}

// Writes the compute copies that are stale. If the update of a training step does not write the copies, the step writes
// them at its start.
void Engine::refresh_copies(int program) {
  const Bound& bound = *bound_[static_cast<std::size_t>(program)];
  if (bound.prepares || (bound.trains && !backend_.updates_copies())) return;
  const int segment = programs_[static_cast<std::size_t>(program)].copies_segment;
  const std::vector<StepUnit>& copies = bound.segments.at({0, segment});
  for (std::size_t copy = 0; copy < copies.size(); ++copy) {
    if (fresh_copies_.is_fresh(program, copy)) continue;
    copies[copy].kernel->run(*compute_, copies[copy].slot);
    fresh_copies_.written(program, copy);
  }
}

void Engine::queue(int buffer) {
  StepBuffers& buffers = *step_buffers_[static_cast<std::size_t>(buffer)];
  Bound& bound = *bound_[static_cast<std::size_t>(buffers.program)];
  bound.work->set_flight(communicators_.flight());
  refresh_copies(buffers.program);
  if (observer_ != nullptr) {
    bound.work->run_observed(buffer, buffers.sources, *observer_);
  } else if (timing_ && !backend_.asynchronous()) {
    bound.work->run_timed(buffer, buffers.sources, buffers.seconds);
  } else {
    bound.work->run(buffer, buffers.sources, timing_ || communicators_.has_peers());
  }
  buffers.done->record(*compute_);
  if (bound.trains) fresh_copies_.trained(buffers.program);
}

void Engine::start(int program, const Batch& batch, const StepInput& input) {
  require(under_way_ < static_cast<int>(step_buffers_.size()), "a step is started before an earlier one is finished");
  const int number = static_cast<int>(started_ % static_cast<std::int64_t>(step_buffers_.size()));
  StepBuffers& buffers = *step_buffers_[static_cast<std::size_t>(number)];
  buffers.program = program;
  const StepTensors& step = programs_[static_cast<std::size_t>(program)].program.step;
  write_scalar(buffers, program, step.learning_rate, static_cast<float>(input.learning_rate));
  write_scalar(buffers, program, step.step, input.step);
  write_scalar(buffers, program, step.updates, input.step - input.left_out);
  write_scalar(buffers, program, step.stop_request, input.abandons ? abandon_request : input.stop ? 1.0f : 0.0f);
  write_scalar(buffers, program, step.loss_scale, static_cast<float>(input.loss_scale));
  for (const PlayerUpdate& update : step.players) {
    write_scalar(buffers, program, update.learning_rate, static_cast<float>(input.learning_rate * update.rate));
    write_scalar(buffers, program, update.updates, (input.step - input.left_out) * update.steps + update.number);
  }
  stage_batch(buffers, batch);
  queue(number);
  ++started_;
  ++under_way_;
  if (buffers.direct)
    buffers.staged->synchronize();  // the batch's memory is free afterwards; the step before runs meanwhile
}

double Engine::read_sum(const StepBuffers& buffers, TensorId tensor, std::int64_t element) const {
  if (tensor == no_tensor) return 0;
  const PlacedTensor& at = programs_[static_cast<std::size_t>(buffers.program)].tensor(tensor);
  std::int64_t offset = at.offset;
  if (at.region != Region::scalars) {
    offset += plan_.of(Region::scalars) - plan_.sums + element * size_of(DType::float32);
  }
  float value = 0;
  std::memcpy(&value, buffers.results.get() + offset, sizeof(value));
  return value;
}

void Engine::read_result(const StepBuffers& buffers, StepResult& result) {
  const Program& program = programs_[static_cast<std::size_t>(buffers.program)].program;
  const StepTensors& step = program.step;
  result.count = read_sum(buffers, step.count);
  result.sums.clear();
  for (const auto* list : {&step.losses, &step.metrics}) {
    for (TensorId id : *list) {
      const std::int64_t sums = program.tensor(id).type.shape.count();
      for (std::int64_t i = 0; i < sums; ++i) result.sums.push_back(read_sum(buffers, id, i));
    }
  }
  result.gradient_norm = read_sum(buffers, step.gradient_norm);
  result.not_finite = read_sum(buffers, step.agree, agree_not_finite) != 0;
  result.stop = read_sum(buffers, step.agree, agree_stop) != 0;
  result.abandoned = read_sum(buffers, step.agree, agree_stop) >= abandon_request;
  if (step.players.empty()) return;
  double squares = 0;  // of the gradients of each player's last update, and of the update that is not finite
  for (const PlayerUpdate& update : step.players) {
    result.not_finite = read_sum(buffers, update.agree, agree_not_finite) != 0;
    const double norm = read_sum(buffers, update.gradient_norm);
    const bool is_left_out = result.not_finite || !std::isfinite(norm);
    if (update.number + 1 == update.steps || is_left_out) squares += norm * norm;
    if (is_left_out) break;  // the later updates are left out because of this one, and their flags say so
  }
  result.gradient_norm = std::sqrt(squares);
}

void Engine::read_phase_seconds(int buffer) {
  const StepBuffers& buffers = *step_buffers_[static_cast<std::size_t>(buffer)];
  const PhaseSeconds seconds = backend_.asynchronous()
                                   ? bound_[static_cast<std::size_t>(buffers.program)]->work->seconds(buffer)
                                   : buffers.seconds;
  const auto of = [&seconds](StepPhase phase) { return seconds[static_cast<std::size_t>(phase)]; };
  phases_ = {of(StepPhase::forward), of(StepPhase::backward), of(StepPhase::communication), of(StepPhase::update),
             of(StepPhase::upload)};
}

// Enters the wait for a step in the flight record.
void Engine::enter_wait() {
  FlightRecord* const flight = communicators_.flight();
  if (flight == nullptr) return;
  const bool on_host = !backend_.asynchronous();
  flight->training().enter({.activity = on_host ? Activity::communicating : Activity::computing,
                            .step = flight->step(),
                            .text = on_host ? "the last collectives of the step" : "waiting for the GPU"});
}

void Engine::finish(StepResult& result) {
  require(under_way_ > 0, "no step is under way");
  const int number = static_cast<int>((started_ - under_way_) % static_cast<std::int64_t>(step_buffers_.size()));
  StepBuffers& buffers = *step_buffers_[static_cast<std::size_t>(number)];
  try {
    enter_wait();
    buffers.done->synchronize();
    if (!backend_.asynchronous()) {
      for (Stream* stream : collectives_->streams()) stream->synchronize();
    }
  } catch (const Error& error) {
    const std::string reached = bound_[static_cast<std::size_t>(buffers.program)]->work->reached(number);
    if (reached.empty()) throw;
    throw Error(error.kind(), format("{}; the GPU had reached {}", error.what(), reached));
  }
  --under_way_;
  read_result(buffers, result);
  if (timing_) read_phase_seconds(number);
}

void Engine::run(int program, const Batch& batch, const StepInput& input, StepResult& result) {
  require(under_way_ == 0, "another step is under way");
  start(program, batch, input);
  finish(result);
}

void Engine::repeat(int back, StepResult& result) {
  const auto count = static_cast<std::int64_t>(step_buffers_.size());
  require(under_way_ == 0 && back < count && started_ > back,
          "the step to repeat is not finished, or its buffer was reused");
  const int buffer = static_cast<int>((started_ - 1 - back) % count);
  queue(buffer);
  step_buffers_[static_cast<std::size_t>(buffer)]->done->synchronize();
  read_result(*step_buffers_[static_cast<std::size_t>(buffer)], result);
}

}  // namespace trainctl
