// Named views of the tensors in flat regions.
#include "core/exec/named_tensors.h"

#include <algorithm>
#include <utility>

namespace trainctl {
namespace {

// The tensor under a name, whose elements begin at `values`: those of `extent`, which is a range of what the program's
// tensor holds, or all of it. That may be a part of the whole tensor.
NamedTensor named(std::string name, const Tensor& tensor, const TensorExtent& extent, float* values) {
  const Shape& shape = tensor.type.shape;
  if (!tensor.part) return {std::move(name), shape, {values, DType::float32, extent.count(shape)}, extent};
  const TensorPart& part = *tensor.part;
  TensorExtent held = part.extent;
  if (!extent.is_whole()) held = TensorExtent::range(part.whole, held, extent.offsets()[0], extent.sizes()[0]);
  return {std::move(name), part.whole, {values, DType::float32, extent.count(shape)}, std::move(held)};
}

void sort_by_name(std::vector<NamedTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; });
}

// Calls visit(entry, extent, memory) for each trainable parameter of which the rank's parts of the buckets hold
// something. `memory` holds these parts.
template <class Visit>
void visit_parts(const Program& program, float* memory, const Visit& visit) {
  const FlatLayout& flat = program.flat;
  auto entry = flat.parameters.begin();
  for (const FlatBucket& bucket : flat.sharding.buckets) {
    const std::int64_t count = bucket.count / flat.sharding.shards, first = flat.part_offset(bucket);
    for (int i = 0; i < bucket.entries; ++i, ++entry) {
      const std::int64_t from = std::max(entry->offset, first);
      const std::int64_t to = std::min(entry->offset + entry->count, first + count);
      if (from >= to) continue;
      const Shape& shape = program.tensor(entry->parameter).type.shape;
      visit(*entry, TensorExtent::range(shape, from - entry->offset, to - from), memory + (from - first));
    }
    memory += count;
  }
}

// Calls visit(entry, extent, memory) for each trainable parameter that the rank holds in `memory`, which is whole or
// holds the rank's parts of the buckets.
template <class Visit>
void visit_trainable(const Program& program, bool in_parts, float* memory, const Visit& visit) {
  if (in_parts) return visit_parts(program, memory, visit);
  for (const FlatEntry& entry : program.flat.parameters) {
    if (entry.offset < program.flat.trainable_count) visit(entry, TensorExtent(), memory + entry.offset);
  }
}

// Appends what the rank holds in `memory` of each trainable parameter, under its name behind a prefix.
void add_trainable(const Program& program, const std::string& prefix, bool in_parts, float* memory,
                   std::vector<NamedTensor>& tensors) {
  visit_trainable(program, in_parts, memory, [&](const FlatEntry& entry, const TensorExtent& extent, float* values) {
    const Tensor& tensor = program.tensor(entry.parameter);
    tensors.push_back(named(prefix + tensor.name, tensor, extent, values));
  });
}

// Appends the factors that an optimizer keeps of each trainable parameter, under its name behind a prefix.
void add_factors(const Program& program, const std::string& prefix, float* memory, std::vector<NamedTensor>& tensors) {
  for (const FlatEntry& entry : program.flat.parameters) {
    if (entry.offset >= program.flat.trainable_count) continue;
    const Tensor& tensor = program.tensor(entry.parameter);
    const Shape shape = factors_shape(tensor.type.shape);
    tensors.push_back(
        {prefix + tensor.name, shape, {memory + entry.factors.offset, DType::float32, shape.count()}, {}});
  }
}

}  // namespace

std::vector<NamedTensor> name_weights(const Program& program, float* trainable, float* frozen, float* statistics) {
  std::vector<NamedTensor> tensors;
  const FlatLayout& flat = program.flat;
  add_trainable(program, "", flat.sharding.parameters, trainable, tensors);
  for (const FlatEntry& entry : flat.parameters) {
    if (entry.offset < flat.trainable_count) continue;
    const Tensor& tensor = program.tensor(entry.parameter);
    tensors.push_back(named(tensor.name, tensor, TensorExtent(), frozen + (entry.offset - flat.trainable_count)));
  }
  for (const FlatPlace& place : program.flat.statistics) {
    const Tensor& tensor = program.tensor(place.tensor);
    tensors.push_back(named(tensor.name, tensor, TensorExtent(), statistics + place.offset));
  }
  sort_by_name(tensors);
  return tensors;
}

std::vector<NamedTensor> name_state(const Program& program, float* states, float* latest) {
  std::vector<NamedTensor> tensors;
  const Sharding& sharding = program.flat.sharding;
  for (std::size_t k = 0; states != nullptr && k < program.flat.states.size(); ++k) {
    const std::string prefix = program.flat.states[k] + "/";
    if (program.flat.factored) {
      add_factors(program, prefix, states, tensors);
    } else {
      add_trainable(program, prefix, sharding.shares(), states, tensors);
    }
    states += program.flat.own_states();
  }
  if (latest != nullptr) add_trainable(program, "latest/", sharding.parameters, latest, tensors);
  sort_by_name(tensors);
  return tensors;
}

std::vector<NamedTensor> name_gradients(const Program& program, float* gradients) {
  std::vector<NamedTensor> tensors;
  add_trainable(program, "", program.flat.sharding.shares(), gradients, tensors);
  sort_by_name(tensors);
  return tensors;
}

}  // namespace trainctl
