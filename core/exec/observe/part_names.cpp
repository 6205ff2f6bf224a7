// Names the parameter to which an element of a flat tensor belongs.
#include "core/exec/observe/part_names.h"

#include <algorithm>

namespace trainctl {
namespace {

// The offset of a parameter, a gradient or a sum in the layout, in elements.
std::int64_t offset_in_layout(const ParameterLayout& flat, TensorId tensor) {
  const auto entry = std::ranges::find(flat.parameters, tensor, &FlatEntry::parameter);
  return entry != flat.parameters.end() ? entry->offset : flat.gradient_offset(tensor);
}

// The member of a bucket that holds the element; no_tensor: none.
TensorId member_at(const Program& program, TensorId bucket, std::int64_t element) {
  const std::vector<TensorId>& members = program.tensor(bucket).members;
  for (const TensorId member : members) {
    const Tensor& of = program.tensor(member);
    const std::int64_t first = of.alias_of == bucket ? of.alias_offset
                                                     : offset_in_layout(program.flat, member) -
                                                           offset_in_layout(program.flat, members.front());
    if (element >= first && element < first + of.type.shape.count()) return member;
  }
  return no_tensor;
}

// The name of what a tensor of a bucket holds of a parameter; empty if the bucket does not have the tensor.
std::string name_in(const FlatBucket& bucket, TensorId tensor, const Program& program, const FlatEntry& entry) {
  const std::string& name = program.tensor(entry.parameter).name;
  if (tensor == bucket.parameter) return name;
  if (tensor == bucket.gradient) return program.tensor(entry.gradient).name;
  if (tensor == bucket.average) return "averages/" + name;
  const auto state = std::ranges::find(bucket.states, tensor);
  if (state == bucket.states.end() || program.flat.factored) return "";
  return program.flat.state_name(entry, static_cast<std::size_t>(state - bucket.states.begin())) + "/" + name;
}

}  // namespace

std::string name_of_element(const Program& program, TensorId tensor, std::int64_t element) {
  if (const TensorId member = member_at(program, tensor, element); member != no_tensor) {
    return program.tensor(member).name;
  }
  for (const LocalExtent& extent : program.flat.local_extents()) {
    if (element < extent.offset || element >= extent.offset + extent.count) continue;
    std::string name = name_in(program.flat.buckets[extent.bucket], tensor, program, *extent.entry);
    if (!name.empty()) return name;
  }
  return program.tensor(tensor).name;
}

}  // namespace trainctl
