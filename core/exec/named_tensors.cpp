// Named views of the tensors in flat regions.
#include "core/exec/named_tensors.h"

#include <algorithm>

namespace trainctl {
namespace {

void sort_by_name(std::vector<NamedTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; });
}

}  // namespace

std::vector<NamedTensor> name_weights(const Program& program, float* parameters, float* statistics) {
  std::vector<NamedTensor> named;
  for (const FlatEntry& entry : program.flat.parameters) {
    const Tensor& tensor = program.tensor(entry.parameter);
    named.push_back({tensor.name, tensor.type.shape, {parameters + entry.offset, DType::float32, entry.count}});
  }
  for (const FlatPlace& place : program.flat.statistics) {
    const Tensor& tensor = program.tensor(place.tensor);
    named.push_back(
        {tensor.name, tensor.type.shape, {statistics + place.offset, DType::float32, tensor.type.shape.count()}});
  }
  sort_by_name(named);
  return named;
}

std::vector<NamedTensor> name_state(const Program& program, float* states) {
  std::vector<NamedTensor> named;
  for (const std::string& state : program.flat.states) {
    for (const FlatEntry& entry : program.flat.parameters) {
      if (entry.gradient == no_tensor) continue;
      const Tensor& tensor = program.tensor(entry.parameter);
      named.push_back(
          {state + "/" + tensor.name, tensor.type.shape, {states + entry.offset, DType::float32, entry.count}});
    }
    states += program.flat.trainable_count;
  }
  sort_by_name(named);
  return named;
}

}  // namespace trainctl
