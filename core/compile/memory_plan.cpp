// Computes the memory plan: flat regions from the layout, compute copies and scalars by name, the slot by lifetimes.
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

std::int64_t aligned(std::int64_t bytes) { return round_up(bytes, allocation_alignment); }

// Assigns offsets in a region: tensors with the same name, in any program, share one offset.
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

// Whether a program reads moving averages as its trainable parameters; `with_training`: whether a program of the run
// trains.
bool reads_averages(const Program& program, bool with_training) {
  return program.flat.averages && with_training && !trains(program);
}

// Whether a program gathers its parameters once in each run, into their region. Otherwise gathered parameters are
// activations in the slot.
bool gathers_once(const Program& program) {
  const ParameterLayout& flat = program.flat;
  return flat.shares(Quantity::parameters) && flat.trainable_count > 0 &&
         program.tensor(flat.parameters.front().parameter).role == Role::parameter;
}

// Number of elements of one slot of the gradients: one set of gradients and sums, and the gap to the next set.
std::int64_t elements_of_slot(const ParameterLayout& flat, bool with_gradients) {
  const std::int64_t gradients = with_gradients ? flat.local_count(Quantity::gradients) : 0;
  return round_up(gradients + flat.gradient_count - flat.trainable_count,
                  allocation_alignment / size_of(DType::float32));
}

class FlatRegions {
 public:
  FlatRegions(PlacedProgram& placed, bool with_gradients)
      : placed_(placed),
        program_(placed.program),
        flat_(program_.flat),
        with_gradients_(with_gradients),
        trainable_(reads_averages(program_, with_gradients) ? Region::averages : Region::parameters) {}

  void place() {
    for (const FlatEntry& entry : flat_.parameters) {
      if (entry.offset >= flat_.trainable_count) {
        put(entry.parameter, Region::parameters, flat_.frozen_offset(entry));
      } else if (!flat_.shares(Quantity::parameters)) {
        put(entry.parameter, trainable_, entry.offset);
      } else if (gathers_once(program_)) {
        put(entry.parameter, Region::gathered, entry.offset);
      }
      if (!flat_.shares(Quantity::gradients)) put(entry.gradient, Region::gradients, entry.offset);
    }
    for (const FlatTensor& statistic : flat_.statistics) put(statistic.tensor, Region::statistics, statistic.offset);
    for (const FlatTensor& sum : flat_.reduced) put(sum.tensor, Region::gradients, sum_offset(sum.offset));
    for (std::size_t id = 0; id < program_.tensors.size(); ++id) {
      const Tensor& tensor = program_.tensors[id];
      if (!tensor.members.empty()) place_whole(static_cast<TensorId>(id), tensor);
    }
    for (const TensorInSlot& in_slot : flat_.in_slots) put_in_slot(in_slot.tensor, in_slot.tensor, in_slot.slot);
    for (const FlatBucket& bucket : flat_.buckets) place_shards(bucket);
    put(program_.step.parameters, Region::parameters, 0);
    put(program_.step.averages, Region::averages, 0);
    put(program_.step.gradients, Region::gradients, 0);
    put(program_.step.sums, Region::gradients, sum_offset(flat_.trainable_count));
    for (std::size_t k = 0; k < program_.step.states.size(); ++k) {
      put(program_.step.states[k], Region::states, static_cast<std::int64_t>(k) * flat_.local_count(Quantity::states));
    }
  }

 private:
  void put(TensorId id, Region region, std::int64_t offset) {
    if (id == no_tensor) return;
    PlacedTensor& tensor = placed_.tensors[index(id)];
    tensor.region = region;
    tensor.offset = offset * size_of(DType::float32);
  }

  // Puts a tensor at the address of its first member.
  void place_whole(TensorId id, const Tensor& tensor) {
    const TensorId first = tensor.members.front();
    if (tensor.role == Role::parameter) {
      const PlacedTensor at = placed_.tensor(first);
      placed_.tensors[index(id)].region = at.region;
      placed_.tensors[index(id)].offset = at.offset;
    } else if (tensor.role == Role::gradient || tensor.role == Role::reduced) {
      put_in_slot(id, first, flat_.gradient_slot(first));
    }
  }

  // Puts a tensor at the offset of `like`, which is a gradient, a sum or a piece of it, in a slot of the gradients. If
  // a slot holds only shards of buckets, this is the offset of the rank's shard of the bucket that begins with the
  // gradient.
  void put_in_slot(TensorId id, TensorId like, int slot) {
    const std::int64_t offset = flat_.gradient_offset(like);
    const bool is_sum = offset >= flat_.trainable_count;
    const std::int64_t in_slot = is_sum ? sum_offset(offset) : flat_.bucket_offset(offset, Quantity::gradients);
    if (slot == 0) return put(id, Region::gradients, in_slot);
    put(id, Region::gradient_slots, (slot - 1) * elements_of_slot(flat_, with_gradients_) + in_slot);
  }

  // The offset of a sum in the region: the layout puts sums after all gradients, the region after the gradients that it
  // holds.
  std::int64_t sum_offset(std::int64_t offset) const {
    return offset - flat_.trainable_count + (with_gradients_ ? flat_.local_count(Quantity::gradients) : 0);
  }

  void place_shards(const FlatBucket& bucket) {
    put(bucket.parameter, trainable_, flat_.shard_offset(bucket, Quantity::parameters));
    put(bucket.average, Region::averages, flat_.shard_offset(bucket, Quantity::parameters));
    put(bucket.gradient, Region::gradients, flat_.shard_offset(bucket, Quantity::gradients));
    for (std::size_t k = 0; k < bucket.states.size(); ++k) {
      const std::int64_t state = static_cast<std::int64_t>(k) * flat_.local_count(Quantity::states);
      put(bucket.states[k], Region::states, state + flat_.shard_offset(bucket, Quantity::states));
    }
  }

  PlacedProgram& placed_;
  const Program& program_;
  const ParameterLayout& flat_;
  const bool with_gradients_;
  const Region trainable_;  // the region of the program's trainable parameters
};

// Sets the bytes of the flat regions. `gradient_slots`: the largest number of gradient slots of any program; `gathers`:
// whether the programs gather parameters once in each run.
void size_flat_regions(const ParameterLayout& flat, bool with_gradients, int gradient_slots, bool gathers,
                       MemoryPlan& plan) {
  constexpr std::int64_t element = size_of(DType::float32);
  const auto set = [&plan](Region region, std::int64_t count) {
    plan.bytes[static_cast<std::size_t>(region)] = checked_multiply(count, element);
  };
  const std::int64_t gradients = with_gradients ? flat.local_count(Quantity::gradients) : 0;
  const std::int64_t parameters = flat.local_count(Quantity::parameters);
  set(Region::parameters, parameters + flat.parameter_count - flat.trainable_count);
  set(Region::gradients, gradients + flat.gradient_count - flat.trainable_count);
  set(Region::gradient_slots,
      with_gradients ? checked_multiply(gradient_slots - 1, elements_of_slot(flat, with_gradients)) : 0);
  set(Region::states,
      with_gradients ? checked_multiply(std::ssize(flat.states), flat.local_count(Quantity::states)) : 0);
  set(Region::averages, with_gradients && flat.averages ? parameters : 0);
  set(Region::statistics, flat.statistic_count);
  set(Region::gathered, gathers ? flat.trainable_count : 0);
  plan.sums = checked_multiply(gradients, element);
}

// Requires equal layouts of two programs, since programs of a run share the flat regions.
void require_equal_layouts(const ParameterLayout& a, const ParameterLayout& b) {
  const auto same_range = [](const FlatEntry& x, const FlatEntry& y) {
    return x.offset == y.offset && x.count == y.count;
  };
  require(a.trainable_count == b.trainable_count && std::ranges::equal(a.parameters, b.parameters, same_range),
          "programs of a run differ in the layout of their parameters");
}

StagingPlan plan_staging(const std::vector<PlacedProgram>& programs, std::int64_t scalars, bool with_batch) {
  std::vector<std::int64_t> largest{scalars};
  std::size_t inputs = 0;
  for (const PlacedProgram& placed : programs) {
    const BatchTensors& batch = placed.program.batch;
    inputs = std::max(inputs, batch.inputs.size());
    largest.resize(std::max(largest.size(), source_count(batch)));
    for (std::size_t number = 1; number < source_count(batch) && with_batch; ++number) {
      largest[number] = std::max(largest[number], part_bytes(placed.program, number));
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
  return on_host ? checked_add(sum, checked_add(prefetched, staged)) : sum;
}

std::vector<MemoryLine> MemoryPlan::lines() const {
  std::vector<MemoryLine> lines;
  for (int i = 0; i < region_count; ++i) {
    const auto region = static_cast<Region>(i);
    lines.push_back({name_of(region), of(region), region == Region::copies || region == Region::slot});
  }
  lines.push_back({"prefetched batches", prefetched});
  lines.push_back({"copies for checkpoints", staged});
  return lines;
}

MemoryPlan least_memory(const std::vector<Program>& programs) {
  MemoryPlan plan;
  const bool training = std::any_of(programs.begin(), programs.end(), trains);
  int slots = 1;
  for (const Program& program : programs) slots = std::max(slots, program.flat.gradient_slots);
  size_flat_regions(programs.front().flat, training, slots, gathers_once(programs.front()), plan);
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
        // Outputs that may be written in place of inputs need no memory of their own.
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
  const ParameterLayout& flat = programs.front().program.flat;
  const bool training =
      std::any_of(programs.begin(), programs.end(), [](const PlacedProgram& placed) { return trains(placed.program); });
  int gradient_slots = 1;
  for (const PlacedProgram& placed : programs) {
    require_equal_layouts(flat, placed.program.flat);
    gradient_slots = std::max(gradient_slots, placed.program.flat.gradient_slots);
  }
  size_flat_regions(flat, training, gradient_slots, gathers_once(programs.front().program), plan);
  SharedByName copies;
  SharedByName scalars;
  SharedByName caches;
  for (PlacedProgram& placed : programs) {
    FlatRegions(placed, training).place();
    const bool averages = reads_averages(placed.program, training);
    for (std::size_t id = 0; id < placed.tensors.size(); ++id) {
      const Tensor& tensor = placed.program.tensors[id];
      PlacedTensor& at = placed.tensors[id];
      if (tensor.role == Role::copy) {
        at.region = Region::copies;
        at.offset = copies.place(averages ? "average of " + tensor.name : tensor.name, at.layout.bytes);
      } else if (tensor.role == Role::scalar) {
        at.region = Region::scalars;
        at.offset = scalars.place(tensor.name, tensor.type.bytes());
      } else if (tensor.role == Role::cache) {
        at.region = Region::caches;
        at.offset = caches.place(tensor.name, tensor.type.bytes());
      }
    }
    plan.slot_bytes = std::max(plan.slot_bytes, place_slot(placed));
    plan.slots = std::max(plan.slots, placed.program.slots);
  }
  const auto set = [&plan](Region region, std::int64_t bytes) { plan.bytes[static_cast<std::size_t>(region)] = bytes; };
  set(Region::copies, copies.total());
  set(Region::scalars, scalars.total());
  set(Region::caches, caches.total());
  plan.staging = plan_staging(programs, scalars.total(), device.asynchronous);
  if (device.asynchronous) set(Region::batches, device.step_buffers() * plan.staging.bytes);
  set(Region::slot, checked_multiply(plan.slots, plan.slot_bytes));
  return plan;
}

}  // namespace trainctl
