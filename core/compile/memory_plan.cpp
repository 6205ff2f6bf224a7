// The memory plan: flat regions from the layout, compute copies and scalars matched by name, the slot by lifetimes.
#include "core/compile/memory_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "core/compile/slot.h"
#include "core/compile/step_inputs.h"

namespace trainctl {
namespace {

std::int64_t aligned(std::int64_t bytes) { return round_up(bytes, place_alignment); }

// Gives tensors of one name, in whatever program, one offset in a region.
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

bool trains(const Program& program) { return program.step.learning_rate != no_tensor; }

void place_flat_regions(PlacedProgram& placed, std::int64_t first_gradient) {
  constexpr std::int64_t element = size_of(DType::float32);
  const auto put = [&placed](TensorId id, Region region, std::int64_t offset) {
    if (id == no_tensor) return;
    PlacedTensor& tensor = placed.tensors[static_cast<std::size_t>(id)];
    tensor.region = region;
    tensor.offset = offset * element;
  };
  const Program& program = placed.program;
  for (const FlatEntry& entry : program.flat.parameters) {
    put(entry.parameter, Region::parameters, entry.offset);
    put(entry.gradient, Region::gradients, entry.offset - first_gradient);
  }
  for (const FlatPlace& place : program.flat.statistics) put(place.tensor, Region::statistics, place.offset);
  for (const FlatPlace& place : program.flat.reduced)
    put(place.tensor, Region::gradients, place.offset - first_gradient);
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    const std::vector<TensorId>& members = program.tensors[id].members;
    if (members.empty()) continue;
    put(static_cast<TensorId>(id), Region::gradients, program.flat.gradient_offset(members[0]) - first_gradient);
  }
  put(program.step.parameters, Region::parameters, 0);
  put(program.step.gradients, Region::gradients, 0);
  put(program.step.sums, Region::gradients, program.flat.trainable_count - first_gradient);
  for (std::size_t k = 0; k < program.step.states.size(); ++k) {
    put(program.step.states[k], Region::states, static_cast<std::int64_t>(k) * program.flat.trainable_count);
  }
}

void size_flat_regions(const FlatLayout& flat, bool with_gradients, MemoryPlan& plan) {
  constexpr std::int64_t element = size_of(DType::float32);
  const auto set = [&plan](Region region, std::int64_t count) {
    plan.bytes[static_cast<std::size_t>(region)] = checked_multiply(count, element);
  };
  const std::int64_t gradients = with_gradients ? flat.trainable_count : 0;
  set(Region::parameters, flat.parameter_count);
  set(Region::gradients, gradients + flat.gradient_count - flat.trainable_count);
  set(Region::states, checked_multiply(std::ssize(flat.states), gradients));
  set(Region::statistics, flat.statistic_count);
  plan.sums = checked_multiply(gradients, element);
}

StagingPlan plan_staging(const std::vector<PlacedProgram>& programs, std::int64_t scalars, bool with_batch) {
  std::vector<std::int64_t> largest{scalars};
  std::size_t inputs = 0;
  for (const PlacedProgram& placed : programs) {
    const BatchTensors& batch = placed.program.batch;
    inputs = std::max(inputs, batch.inputs.size());
    largest.resize(std::max(largest.size(), source_count(batch)));
    for (std::size_t number = 1; number < source_count(batch) && with_batch; ++number) {
      const TensorId id = part_at(batch, number);
      if (id == no_tensor) continue;
      const std::int64_t bytes = checked_multiply(placed.program.tensor(id).type.bytes(), placed.program.micro_batches);
      largest[number] = std::max(largest[number], bytes);
    }
  }
  StagingPlan staging;
  staging.offsets.resize(largest.size());
  const auto place = [&](std::size_t number) {
    staging.offsets[number] = staging.bytes;
    staging.bytes = checked_add(staging.bytes, aligned(largest[number]));
  };
  place(scalars_source);
  for (std::size_t number = 1 + inputs; number < largest.size(); ++number) place(number);
  for (std::size_t number = 1; number <= inputs; ++number) place(number);
  return staging;
}

}  // namespace

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
  const bool training = std::any_of(programs.begin(), programs.end(), trains);
  size_flat_regions(programs.front().flat, training, plan);
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
        // Outputs that may be written in place of inputs take no memory of their own.
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

MemoryPlan place_tensors(std::vector<PlacedProgram>& programs, const DeviceTraits& device) {
  MemoryPlan plan;
  plan.on_host = device.on_host;
  const FlatLayout& flat = programs.front().program.flat;
  const bool training =
      std::any_of(programs.begin(), programs.end(), [](const PlacedProgram& placed) { return trains(placed.program); });
  size_flat_regions(flat, training, plan);
  SharedByName copies;
  SharedByName scalars;
  for (PlacedProgram& placed : programs) {
    place_flat_regions(placed, training ? 0 : flat.trainable_count);
    for (std::size_t id = 0; id < placed.tensors.size(); ++id) {
      const Tensor& tensor = placed.program.tensors[id];
      PlacedTensor& at = placed.tensors[id];
      if (tensor.role == Role::copy) {
        at.region = Region::copies;
        at.offset = copies.place(tensor.name, at.layout.bytes);
      } else if (tensor.role == Role::scalar) {
        at.region = Region::scalars;
        at.offset = scalars.place(tensor.name, tensor.type.bytes());
      }
    }
    plan.slot_bytes = std::max(plan.slot_bytes, place_slot(placed));
    plan.slots = std::max(plan.slots, placed.program.slots);
  }
  const auto set = [&plan](Region region, std::int64_t bytes) { plan.bytes[static_cast<std::size_t>(region)] = bytes; };
  set(Region::copies, copies.total());
  set(Region::scalars, scalars.total());
  plan.staging = plan_staging(programs, scalars.total(), device.asynchronous);
  if (device.asynchronous) set(Region::batches, device.step_buffers() * plan.staging.bytes);
  set(Region::slot, checked_multiply(plan.slots, plan.slot_bytes));
  return plan;
}

}  // namespace trainctl
