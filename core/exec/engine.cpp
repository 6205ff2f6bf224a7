// Engine: allocates the planned memory, binds ops to it, and runs schedules.
#include "core/exec/engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/exec/named_tensors.h"
#include "core/graph/ops/update.h"

namespace trainctl {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

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
        if (op.def->kind() != "all_reduce") continue;
        buckets.count = std::max(buckets.count, op.as<AllReduce>().bucket + 1);
        buckets.overlap = buckets.overlap || segment.name != "update";
      }
    }
  }
  return buckets;
}

}  // namespace

// The bound ops of one program.
struct Engine::Bound {
  struct BoundOp {
    std::unique_ptr<Kernel> kernel;  // null: nothing to run
    double* part = nullptr;          // where its time is added
  };
  std::vector<std::vector<BoundOp>> segments;
  std::vector<bool> reads_batch;    // by segment: the batch is uploaded before it
  std::vector<std::string> copies;  // names of its compute copies
  bool copies_fresh = false;
};

Engine::Engine(Backend& backend, Communicator& communicator, std::vector<LoweredProgram> programs)
    : backend_(backend),
      communicator_(communicator),
      programs_(std::move(programs)),
      plan_(plan_memory(programs_)),
      compute_(backend.compute_stream()) {
  const Buckets buckets = buckets_of(programs_);
  if (buckets.overlap) communication_ = backend_.asynchronous_stream();
  collectives_ = std::make_unique<CollectiveStreams>(backend_, communicator_,
                                                     communication_ ? *communication_ : *compute_, buckets.count);
  for (int region = 0; region < region_count; ++region) {
    const std::int64_t bytes = plan_.bytes[static_cast<std::size_t>(region)];
    const bool reduced = static_cast<Region>(region) == Region::gradients;
    regions_.push_back(bytes == 0 ? Memory{} : reduced ? communicator_.allocate(bytes) : backend_.allocate(bytes));
  }
  for (int program = 0; program < static_cast<int>(programs_.size()); ++program) bind(program);
  name_tensors();
}

Engine::~Engine() = default;

Address Engine::address(int program, TensorId tensor) const {
  const Location& location =
      plan_.programs[static_cast<std::size_t>(program)].tensors[static_cast<std::size_t>(tensor)];
  if (location.region == Region::slot) return {nullptr, location.offset};
  return {base(location.region), location.offset};
}

void Engine::bind(int program) {
  const LoweredProgram& lowered = programs_[static_cast<std::size_t>(program)];
  const auto& workspaces = plan_.programs[static_cast<std::size_t>(program)].workspaces;
  auto bound = std::make_unique<Bound>();
  const View gradients{base(Region::gradients), DType::float32, lowered.program.flat.gradient_count};
  for (std::size_t s = 0; s < lowered.program.segments.size(); ++s) {
    const Segment& segment = lowered.program.segments[s];
    double* part = segment.name == "forward"              ? &parts_.forward
                   : segment.name.starts_with("backward") ? &parts_.backward
                                                          : &parts_.update;
    auto& ops = bound->segments.emplace_back();
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      const Op& op = segment.ops[o];
      if (runs_in_executor(op)) {
        const bool alias = op.def->kind() == "reshape";
        ops.push_back({alias ? nullptr : bind_collective(op, gradients, *collectives_), &parts_.communication});
        continue;
      }
      Binding binding;
      for (TensorId id : op.inputs) binding.inputs.push_back(address(program, id));
      for (TensorId id : op.outputs) binding.outputs.push_back(address(program, id));
      binding.workspace = {nullptr, std::max<std::int64_t>(workspaces[s][o], 0)};
      ops.push_back({lowered.lowerings[s][o].bind(binding), part});
    }
    bound->reads_batch.push_back(segment.name == "forward");
  }
  bound_.push_back(std::move(bound));
}

void Engine::name_tensors() {
  const Program& program = programs_.front().program;
  const FlatLayout& flat = program.flat;
  const std::size_t states = flat.states.size();
  host_.resize(static_cast<std::size_t>(flat.parameter_count + flat.statistic_count +
                                        static_cast<std::int64_t>(states) * flat.trainable_count));
  host_scalars_.resize(static_cast<std::size_t>(plan_.of(Region::scalars)));
  host_sums_.resize(static_cast<std::size_t>(flat.gradient_count - flat.trainable_count));
  float* parameters = host_.data();
  float* statistics = parameters + flat.parameter_count;
  weights_ = name_weights(program, parameters, statistics);
  state_ = name_state(program, statistics + flat.statistic_count);
}

void Engine::download() {
  float* to = host_.data();
  for (Region region : {Region::parameters, Region::statistics, Region::states}) {
    backend_.copy(to, base(region), plan_.of(region), *compute_);
    to += plan_.of(region) / size_of(DType::float32);
  }
  compute_->synchronize();
}

void Engine::upload() {
  const float* from = host_.data();
  for (Region region : {Region::parameters, Region::statistics, Region::states}) {
    backend_.copy(base(region), from, plan_.of(region), *compute_);
    from += plan_.of(region) / size_of(DType::float32);
  }
  compute_->synchronize();
  weights_changed();
}

void Engine::weights_changed() {
  for (auto& bound : bound_) bound->copies_fresh = false;
}

void Engine::read_tensor(int program, TensorId tensor, std::vector<std::byte>& bytes) {
  bytes.resize(static_cast<std::size_t>(
      programs_[static_cast<std::size_t>(program)].layouts[static_cast<std::size_t>(tensor)].bytes));
  backend_.copy(bytes.data(), address(program, tensor).at(slot(0)), static_cast<std::int64_t>(bytes.size()), *compute_);
  compute_->synchronize();
}

void Engine::upload_batch(int program, const Batch& batch, int micro_batch, const Slot& slot) {
  const Program& described = programs_[static_cast<std::size_t>(program)].program;
  const auto upload = [&](TensorId tensor, const View& all) {
    if (tensor == no_tensor) return;
    const TensorType& type = described.tensor(tensor).type;
    const View part = all.part(micro_batch * type.shape.count(), type.shape.count());
    require(all.dtype == type.dtype && part.count * (micro_batch + 1) <= all.count, "a batch does not fit its program");
    backend_.copy(address(program, tensor).at(slot), part.data, part.bytes(), *compute_);
  };
  upload(described.batch.inputs, batch.inputs);
  upload(described.batch.targets, batch.targets);
  upload(described.batch.weights, batch.weights);
  upload(described.batch.samples, batch.samples);
}

void Engine::run_op(int program, int segment, int op, const Slot& slot) {
  Bound::BoundOp& bound = bound_[static_cast<std::size_t>(program)]
                              ->segments[static_cast<std::size_t>(segment)][static_cast<std::size_t>(op)];
  if (bound.kernel == nullptr) return;
  if (!timing_ && observer_ == nullptr) return bound.kernel->run(*compute_, slot);
  const double start = now();
  bound.kernel->run(*compute_, slot);
  if (observer_ != nullptr) compute_->synchronize();
  const double end = now();
  *bound.part += end - start;
  if (observer_ != nullptr) observer_->ran(programs_[static_cast<std::size_t>(program)], segment, op, start, end);
}

void Engine::run_segment(int program, int segment, const Slot& slot) {
  const auto& ops = bound_[static_cast<std::size_t>(program)]->segments[static_cast<std::size_t>(segment)];
  for (int op = 0; op < static_cast<int>(ops.size()); ++op) run_op(program, segment, op, slot);
}

void Engine::refresh_copies(int program) {
  Bound& bound = *bound_[static_cast<std::size_t>(program)];
  if (bound.copies_fresh) return;
  run_segment(program, programs_[static_cast<std::size_t>(program)].copies_segment, slot(0));
  bound.copies_fresh = true;
}

template <class T>
void Engine::write_scalar(int program, TensorId tensor, T value) {
  if (tensor == no_tensor) return;
  const Location& at = plan_.programs[static_cast<std::size_t>(program)].tensors[static_cast<std::size_t>(tensor)];
  std::memcpy(host_scalars_.data() + at.offset, &value, sizeof(T));
}

double Engine::read_sum(int program, TensorId tensor, int element) const {
  if (tensor == no_tensor) return 0;
  const Location& at = plan_.programs[static_cast<std::size_t>(program)].tensors[static_cast<std::size_t>(tensor)];
  if (at.region == Region::scalars) {
    float value = 0;
    std::memcpy(&value, host_scalars_.data() + at.offset, sizeof(value));
    return value;
  }
  const std::int64_t first = programs_[static_cast<std::size_t>(program)].program.flat.trainable_count;
  return host_sums_[static_cast<std::size_t>(at.offset / size_of(DType::float32) - first + element)];
}

void Engine::read_result(int program, StepResult& result) {
  const FlatLayout& flat = programs_[static_cast<std::size_t>(program)].program.flat;
  backend_.copy(host_scalars_.data(), base(Region::scalars), plan_.of(Region::scalars), *compute_);
  backend_.copy(host_sums_.data(), base(Region::gradients) + flat.trainable_count * size_of(DType::float32),
                static_cast<std::int64_t>(host_sums_.size()) * size_of(DType::float32), *compute_);
  compute_->synchronize();
  const StepTensors& step = programs_[static_cast<std::size_t>(program)].program.step;
  result.count = read_sum(program, step.count);
  result.loss_sum = read_sum(program, step.loss);
  result.metric_sums.resize(step.metrics.size());
  for (std::size_t i = 0; i < step.metrics.size(); ++i) result.metric_sums[i] = read_sum(program, step.metrics[i]);
  result.gradient_norm = read_sum(program, step.gradient_norm);
  result.not_finite = read_sum(program, step.agree, agree_not_finite) != 0;
  result.stop = read_sum(program, step.agree, agree_stop) != 0;
}

void Engine::run(int program, const Batch& batch, const StepInput& input, StepResult& result) {
  const LoweredProgram& lowered = programs_[static_cast<std::size_t>(program)];
  const StepTensors& step = lowered.program.step;
  write_scalar(program, step.learning_rate, static_cast<float>(input.learning_rate));
  write_scalar(program, step.step, input.step);
  write_scalar(program, step.stop_request, input.stop ? 1.0f : 0.0f);
  backend_.copy(base(Region::scalars), host_scalars_.data(), plan_.of(Region::scalars), *compute_);
  refresh_copies(program);
  parts_ = {};
  for (const ScheduleItem& item : lowered.program.schedule) {
    const Slot where = slot(item.slot);
    if (bound_[static_cast<std::size_t>(program)]->reads_batch[static_cast<std::size_t>(item.segment)]) {
      const double start = timing_ ? now() : 0;
      upload_batch(program, batch, item.micro_batch, where);
      if (timing_) parts_.upload += now() - start;
    }
    run_segment(program, item.segment, where);
  }
  read_result(program, result);
  if (step.learning_rate != no_tensor) weights_changed();
}

}  // namespace trainctl
