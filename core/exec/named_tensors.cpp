// Named views of the tensors in flat regions.
#include "core/exec/named_tensors.h"

#include <algorithm>
#include <utility>

namespace trainctl {
namespace {

// The tensor under a name; its values, or those of its part, begin at `values`.
NamedTensor named(std::string name, const Tensor& tensor, float* values) {
  const View view{values, DType::float32, tensor.type.shape.count()};
  if (!tensor.part) return {std::move(name), tensor.type.shape, view};
  return {std::move(name), tensor.part->whole, view, tensor.part->extent};
}

void sort_by_name(std::vector<NamedTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; });
}

}  // namespace

std::vector<NamedTensor> name_weights(const Program& program, float* parameters, float* statistics) {
  std::vector<NamedTensor> tensors;
  for (const FlatEntry& entry : program.flat.parameters) {
    const Tensor& tensor = program.tensor(entry.parameter);
    tensors.push_back(named(tensor.name, tensor, parameters + entry.offset));
  }
  for (const FlatPlace& place : program.flat.statistics) {
    const Tensor& tensor = program.tensor(place.tensor);
    tensors.push_back(named(tensor.name, tensor, statistics + place.offset));
  }
  sort_by_name(tensors);
  return tensors;
}

std::vector<NamedTensor> name_state(const Program& program, float* states) {
  std::vector<NamedTensor> tensors;
  for (const std::string& state : program.flat.states) {
    for (const FlatEntry& entry : program.flat.parameters) {
      if (entry.gradient == no_tensor) continue;
      const Tensor& tensor = program.tensor(entry.parameter);
      tensors.push_back(named(state + "/" + tensor.name, tensor, states + entry.offset));
    }
    states += program.flat.trainable_count;
  }
  sort_by_name(tensors);
  return tensors;
}

}  // namespace trainctl
