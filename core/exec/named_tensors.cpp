// Makes named views of the tensors in flat regions.
#include "core/exec/named_tensors.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace trainctl {
namespace {

// Returns a named view of the elements of `extent`, which begin at `values`. The extent is a range of the program's
// tensor or all of it; the program's tensor may itself be a shard of a whole tensor.
NamedTensor named(std::string name, const Tensor& tensor, const TensorExtent& extent, float* values) {
  const Shape& shape = tensor.type.shape;
  if (!tensor.shard) return {std::move(name), shape, {values, DType::float32, extent.count(shape)}, extent};
  const TensorShard& shard = *tensor.shard;
  TensorExtent held = shard.extent;
  if (!extent.is_whole()) held = TensorExtent::range(shard.whole, held, extent.offsets()[0], extent.sizes()[0]);
  return {std::move(name), shard.whole, {values, DType::float32, extent.count(shape)}, std::move(held)};
}

void sort_by_name(std::vector<NamedTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; });
}

// Returns the prefix of the name of a parameter's tensor.
using PrefixOf = std::function<std::string(const FlatEntry&)>;

PrefixOf always(const std::string& prefix) {
  return [prefix](const FlatEntry&) { return prefix; };
}

// Appends the range that the rank holds of each trainable parameter, named by the prefix and the parameter's name.
// `memory` is the region of the quantity: all parameters, or the rank's shards of the buckets one after the other.
void add_trainable(const Program& program, const PrefixOf& prefix_of, Quantity quantity, float* memory,
                   std::vector<NamedTensor>& tensors) {
  const ParameterLayout& flat = program.flat;
  const auto add = [&](const FlatEntry& entry, const TensorExtent& extent, std::int64_t offset) {
    const Tensor& tensor = program.tensor(entry.parameter);
    const std::string prefix = prefix_of(entry);
    if (prefix == "/") return;  // the parameter's optimizer does not have this state
    tensors.push_back(named(prefix + tensor.name, tensor, extent, memory + offset));
  };
  if (!flat.shares(quantity)) {
    for (const FlatEntry& entry : flat.parameters) {
      if (entry.offset < flat.trainable_count) add(entry, TensorExtent(), entry.offset);
    }
    return;
  }
  for (const LocalExtent& local : flat.local_extents()) {
    const Shape& shape = program.tensor(local.entry->parameter).type.shape;
    add(*local.entry, TensorExtent::range(shape, local.first, local.count),
        flat.shard_offset(flat.buckets[local.bucket], quantity) + local.offset);
  }
}

// Appends an optimizer's factors of each trainable parameter, named by the prefix and the parameter's name.
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
  const ParameterLayout& flat = program.flat;
  add_trainable(program, always(""), Quantity::parameters, trainable, tensors);
  for (const FlatEntry& entry : flat.parameters) {
    if (entry.offset < flat.trainable_count) continue;
    const Tensor& tensor = program.tensor(entry.parameter);
    tensors.push_back(named(tensor.name, tensor, TensorExtent(), frozen + (entry.offset - flat.trainable_count)));
  }
  for (const FlatTensor& statistic : program.flat.statistics) {
    const Tensor& tensor = program.tensor(statistic.tensor);
    tensors.push_back(named(tensor.name, tensor, TensorExtent(), statistics + statistic.offset));
  }
  sort_by_name(tensors);
  return tensors;
}

std::vector<NamedTensor> name_state(const Program& program, float* states, float* latest) {
  std::vector<NamedTensor> tensors;
  for (std::size_t k = 0; states != nullptr && k < program.flat.states.size(); ++k) {
    if (program.flat.factored) {
      add_factors(program, program.flat.states[k] + "/", states, tensors);
    } else {
      const auto prefix = [&flat = program.flat, k](const FlatEntry& of) { return flat.state_name(of, k) + "/"; };
      add_trainable(program, prefix, Quantity::states, states, tensors);
    }
    states += program.flat.local_count(Quantity::states);
  }
  if (latest != nullptr) add_trainable(program, always("latest/"), Quantity::parameters, latest, tensors);
  sort_by_name(tensors);
  return tensors;
}

std::vector<NamedTensor> name_gradients(const Program& program, float* gradients) {
  std::vector<NamedTensor> tensors;
  add_trainable(program, always(""), Quantity::states, gradients, tensors);
  sort_by_name(tensors);
  return tensors;
}

}  // namespace trainctl
