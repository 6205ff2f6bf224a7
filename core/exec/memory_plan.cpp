// The memory plan: flat regions from the layout, compute copies and scalars by name, the arena from liveness.
#include "core/exec/memory_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "core/program/liveness.h"

namespace trainctl {
namespace {

constexpr std::int64_t alignment = 256;  // what cuBLASLt wants of a workspace

std::int64_t aligned(std::int64_t bytes) { return round_up(bytes, alignment); }

// The order of one slot's ops. Variants of the backward segment run at the same moments, since only one of them runs
// for a micro-batch; collectives take no moment. Moment 0 is before the first op, when the batch arrives.
class Timeline {
 public:
  explicit Timeline(const LoweredProgram& lowered) {
    const auto& segments = lowered.program.segments;
    moments_.resize(segments.size());
    int next = 1;
    int backward_start = -1;
    for (int s : order(lowered)) {
      const Segment& segment = segments[static_cast<std::size_t>(s)];
      const bool variant = segment.phase == Phase::backward;
      if (variant && backward_start < 0) backward_start = next;
      int moment = variant ? backward_start : next;
      for (const Op& op : segment.ops) {
        moments_[static_cast<std::size_t>(s)].push_back(moment);
        if (op.def->trait() == OpTrait::kernel) ++moment;
      }
      next = std::max(next, moment);
    }
    end_ = next;
  }

  int moment(std::size_t segment, std::size_t op) const { return moments_[segment][op]; }
  int end() const { return end_; }

 private:
  // Segments in the order in which they first run; the copies segment, which may run on its own, last.
  static std::vector<int> order(const LoweredProgram& lowered) {
    std::vector<int> order;
    const auto add = [&order](int s) {
      if (std::find(order.begin(), order.end(), s) == order.end()) order.push_back(s);
    };
    for (const ScheduleItem& item : lowered.program.schedule) add(item.segment);
    add(lowered.copies_segment);
    return order;
  }

  std::vector<std::vector<int>> moments_;
  int end_ = 0;
};

// Lifetimes of the slot's tensors and workspaces of one program.
class SlotPlanner {
 public:
  SlotPlanner(const LoweredProgram& lowered, ProgramPlaces& places)
      : lowered_(lowered), places_(places), timeline_(lowered), lifetime_of_(lowered.program.tensors.size(), -1) {}

  std::int64_t plan() {
    arrive_inputs();
    for_each_op([this](std::size_t s, std::size_t o, const Op& op) { touch(op, timeline_.moment(s, o)); });
    keep_predictions();
    for_each_op([this](std::size_t s, std::size_t o, const Op& op) { reuse(op, timeline_.moment(s, o)); });
    for_each_op([this](std::size_t s, std::size_t o, const Op&) { add_workspace(s, o); });
    const ArenaPlan arena = plan_arena(lifetimes_, alignment);
    write_places(arena);
    return arena.bytes;
  }

 private:
  template <class Visit>
  void for_each_op(Visit visit) {
    const auto& segments = lowered_.program.segments;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      for (std::size_t o = 0; o < segments[s].ops.size(); ++o) visit(s, o, segments[s].ops[o]);
    }
  }

  // The tensor whose memory this one is, or no_tensor where it does not lie in the slot.
  TensorId owner(TensorId id) const {
    while (id != no_tensor && lowered_.program.tensor(id).alias_of != no_tensor)
      id = lowered_.program.tensor(id).alias_of;
    if (id == no_tensor) return no_tensor;
    const Role role = lowered_.program.tensor(id).role;
    return role == Role::activation || role == Role::input ? id : no_tensor;
  }

  Lifetime& lifetime(TensorId id) { return lifetimes_[static_cast<std::size_t>(index(id))]; }
  int& index(TensorId id) { return lifetime_of_[static_cast<std::size_t>(id)]; }

  void live_at(TensorId tensor, int moment) {
    const TensorId id = owner(tensor);
    if (id == no_tensor) return;
    if (index(id) < 0) {
      index(id) = static_cast<int>(lifetimes_.size());
      lifetimes_.push_back({lowered_.layouts[static_cast<std::size_t>(id)].bytes, moment, moment, -1});
    }
    lifetime(id).first = std::min(lifetime(id).first, moment);
    lifetime(id).last = std::max(lifetime(id).last, moment);
  }

  void arrive_inputs() {
    const BatchTensors& batch = lowered_.program.batch;
    for (TensorId id : {batch.inputs, batch.targets, batch.weights, batch.samples}) {
      if (id != no_tensor) live_at(id, 0);
    }
  }

  void touch(const Op& op, int moment) {
    for (TensorId id : op.inputs) live_at(id, moment);
    for (TensorId id : op.outputs) live_at(id, moment);
  }

  // The network's output is read by the host after an evaluation.
  void keep_predictions() {
    const Program& program = lowered_.program;
    if (program.step.predictions != no_tensor && program.step.learning_rate == no_tensor) {
      live_at(program.step.predictions, timeline_.end());
    }
  }

  // An output takes the memory of an input that ends here, where the op allows it and both lie alike.
  void reuse(const Op& op, int moment) {
    for (const InPlace& pair : op.def->in_place()) {
      const TensorId from = owner(op.inputs[static_cast<std::size_t>(pair.input)]);
      const TensorId to = owner(op.outputs[static_cast<std::size_t>(pair.output)]);
      if (from == no_tensor || to == no_tensor || from == to || lifetime(to).continues >= 0) continue;
      const bool alike =
          lowered_.layouts[static_cast<std::size_t>(from)] == lowered_.layouts[static_cast<std::size_t>(to)] &&
          lifetime(from).bytes == lifetime(to).bytes;
      const bool read_once =
          std::count_if(op.inputs.begin(), op.inputs.end(), [&](TensorId id) { return owner(id) == from; }) == 1;
      if (!alike || !read_once || lifetime(from).last != moment || lifetime(to).first != moment || continued_[from])
        continue;
      lifetime(to).continues = index(from);
      continued_[from] = true;
    }
  }

  // Ops of variants at the same moment share one workspace.
  void add_workspace(std::size_t segment, std::size_t op) {
    const std::int64_t bytes = lowered_.lowerings[segment][op].workspace_bytes;
    if (bytes == 0) return;
    const int moment = timeline_.moment(segment, op);
    const auto [entry, added] = workspace_at_.try_emplace(moment, static_cast<int>(lifetimes_.size()));
    if (added) lifetimes_.push_back({0, moment, moment, -1});
    Lifetime& shared = lifetimes_[static_cast<std::size_t>(entry->second)];
    shared.bytes = std::max(shared.bytes, bytes);
  }

  void write_places(const ArenaPlan& arena) {
    for (std::size_t id = 0; id < lifetime_of_.size(); ++id) {
      const TensorId memory = owner(static_cast<TensorId>(id));
      if (memory == no_tensor || index(memory) < 0) continue;
      places_.tensors[id] = {Region::slot, arena.offsets[static_cast<std::size_t>(index(memory))]};
    }
    for_each_op([&](std::size_t s, std::size_t o, const Op&) {
      if (lowered_.lowerings[s][o].workspace_bytes == 0) return;
      places_.workspaces[s][o] = arena.offsets[static_cast<std::size_t>(workspace_at_.at(timeline_.moment(s, o)))];
    });
  }

  const LoweredProgram& lowered_;
  ProgramPlaces& places_;
  Timeline timeline_;
  std::vector<int> lifetime_of_;  // by tensor: its lifetime, -1 where it has none
  std::vector<Lifetime> lifetimes_;
  std::map<TensorId, bool> continued_;
  std::map<int, int> workspace_at_;  // by moment
};

// Offsets of tensors that all programs share by name.
class SharedByName {
 public:
  std::int64_t place(const std::string& name, std::int64_t bytes) {
    const auto [entry, added] = offsets_.try_emplace(name, total_);
    if (added) total_ = checked_add(total_, aligned(bytes));
    return entry->second;
  }
  std::int64_t total() const { return total_; }

 private:
  std::map<std::string, std::int64_t> offsets_;
  std::int64_t total_ = 0;
};

void place_flat(const Program& program, ProgramPlaces& places) {
  constexpr std::int64_t element = size_of(DType::float32);
  const auto put = [&places](TensorId id, Region region, std::int64_t offset) {
    if (id != no_tensor) places.tensors[static_cast<std::size_t>(id)] = {region, offset * element};
  };
  for (const FlatEntry& entry : program.flat.parameters) {
    put(entry.parameter, Region::parameters, entry.offset);
    put(entry.gradient, Region::gradients, entry.offset);
  }
  for (const FlatPlace& place : program.flat.statistics) put(place.tensor, Region::statistics, place.offset);
  for (const FlatPlace& place : program.flat.reduced) put(place.tensor, Region::gradients, place.offset);
  put(program.step.parameters, Region::parameters, 0);
  put(program.step.gradients, Region::gradients, 0);
  for (std::size_t k = 0; k < program.step.states.size(); ++k) {
    put(program.step.states[k], Region::states, static_cast<std::int64_t>(k) * program.flat.trainable_count);
  }
}

void size_flat_regions(const FlatLayout& flat, MemoryPlan& plan) {
  constexpr std::int64_t element = size_of(DType::float32);
  const auto set = [&plan](Region region, std::int64_t count) {
    plan.bytes[static_cast<std::size_t>(region)] = checked_multiply(count, element);
  };
  set(Region::parameters, flat.parameter_count);
  set(Region::gradients, flat.gradient_count);
  set(Region::states, checked_multiply(std::ssize(flat.states), flat.trainable_count));
  set(Region::statistics, flat.statistic_count);
}

StagingPlan plan_staging(const std::vector<LoweredProgram>& programs, std::int64_t scalars, bool with_batch) {
  std::array<std::int64_t, step_inputs> largest{scalars};
  for (const LoweredProgram& lowered : programs) {
    const auto parts = batch_parts(lowered.program.batch);
    for (std::size_t i = 1; i < step_inputs; ++i) {
      if (parts[i] == no_tensor || !with_batch) continue;
      const std::int64_t bytes =
          checked_multiply(lowered.program.tensor(parts[i]).type.bytes(), lowered.program.micro_batches);
      largest[i] = std::max(largest[i], bytes);
    }
  }
  StagingPlan staging;
  for (const StepInputs one :
       {StepInputs::scalars, StepInputs::targets, StepInputs::weights, StepInputs::samples, StepInputs::inputs}) {
    const auto part = static_cast<std::size_t>(one);
    staging.offsets[part] = staging.bytes;
    staging.bytes = checked_add(staging.bytes, aligned(largest[part]));
  }
  return staging;
}

}  // namespace

std::string_view name_of(Region region) {
  static constexpr std::array<std::string_view, region_count> names{
      "parameters",     "gradients", "optimizer state", "running statistics",
      "compute copies", "scalars",   "batches",         "arena"};
  return names[static_cast<std::size_t>(region)];
}

std::int64_t MemoryPlan::total() const {
  std::int64_t sum = 0;
  for (std::int64_t region : bytes) sum = checked_add(sum, region);
  return on_host ? checked_add(sum, prefetched) : sum;
}

std::vector<MemoryLine> MemoryPlan::lines() const {
  std::vector<MemoryLine> lines;
  for (int i = 0; i < region_count; ++i) {
    const auto region = static_cast<Region>(i);
    lines.push_back({name_of(region), of(region), region == Region::copies || region == Region::slot});
  }
  lines.push_back({"prefetched batches", prefetched});
  return lines;
}

MemoryPlan least_memory(const std::vector<Program>& programs) {
  MemoryPlan plan;
  size_flat_regions(programs.front().flat, plan);
  for (const Program& program : programs) {
    for (const Segment& segment : program.segments) {
      for (const Op& op : segment.ops) {
        std::set<TensorId> tensors;
        for (const auto* list : {&op.inputs, &op.outputs}) {
          for (TensorId id : *list) {
            const Role role = program.tensor(id).role;
            const bool alias = program.tensor(id).alias_of != no_tensor;
            if (!alias && (role == Role::activation || role == Role::input)) tensors.insert(id);
          }
        }
        // Outputs may lie where inputs did.
        for (const InPlace& pair : op.def->in_place()) tensors.erase(op.outputs[static_cast<std::size_t>(pair.output)]);
        std::int64_t bytes = 0;
        for (TensorId id : tensors) bytes = checked_add(bytes, program.tensor(id).type.bytes());
        plan.slot_bytes = std::max(plan.slot_bytes, bytes);
      }
    }
  }
  plan.bytes[static_cast<std::size_t>(Region::slot)] = plan.slot_bytes;
  return plan;
}

MemoryPlan plan_memory(const std::vector<LoweredProgram>& programs, const Backend& backend) {
  MemoryPlan plan;
  plan.on_host = backend.on_host();
  SharedByName copies;
  SharedByName scalars;
  for (const LoweredProgram& lowered : programs) {
    const Program& program = lowered.program;
    ProgramPlaces places;
    places.tensors.resize(program.tensors.size());
    for (const auto& segment : lowered.lowerings) places.workspaces.emplace_back(segment.size(), -1);
    place_flat(program, places);
    for (std::size_t id = 0; id < program.tensors.size(); ++id) {
      const Tensor& tensor = program.tensors[id];
      if (tensor.role == Role::copy) {
        places.tensors[id] = {Region::copies, copies.place(tensor.name, lowered.layouts[id].bytes)};
      } else if (tensor.role == Role::scalar) {
        places.tensors[id] = {Region::scalars, scalars.place(tensor.name, tensor.type.bytes())};
      }
    }
    plan.slot_bytes = std::max(plan.slot_bytes, aligned(SlotPlanner(lowered, places).plan()));
    plan.slots = std::max(plan.slots, program.slots);
    plan.programs.push_back(std::move(places));
  }
  const auto set = [&plan](Region region, std::int64_t bytes) { plan.bytes[static_cast<std::size_t>(region)] = bytes; };
  size_flat_regions(programs.front().program.flat, plan);
  set(Region::copies, copies.total());
  set(Region::scalars, scalars.total());
  plan.staging = plan_staging(programs, scalars.total(), backend.asynchronous());
  if (backend.asynchronous()) set(Region::batches, step_buffers_of(backend) * plan.staging.bytes);
  set(Region::slot, checked_multiply(plan.slots, plan.slot_bytes));
  return plan;
}

}  // namespace trainctl
