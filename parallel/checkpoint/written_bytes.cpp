// Counts the bytes that a rank writes to a checkpoint.
#include "parallel/checkpoint/written_bytes.h"

#include "core/program/placements.h"

namespace trainctl {

WrittenBytes written_bytes(const Program& program, const MeshRank& rank) {
  const ParameterLayout& layout = program.flat;
  const bool first_replica = rank.along(MeshAxis::data) == 0;
  // Returns the number of elements that the rank writes of a quantity with the layout of the trainable parameters.
  const auto written = [&](Quantity quantity) {
    std::int64_t elements = 0;
    if (layout.shares(quantity)) {
      for (const LocalExtent& extent : layout.local_extents()) {
        if (is_first_holder(program, rank, *extent.entry)) elements += extent.count;
      }
    } else if (first_replica) {
      for (const FlatEntry& entry : layout.parameters) {
        if (entry.gradient != no_tensor && is_first_holder(program, rank, entry)) elements += entry.count;
      }
    }
    return elements;
  };

  WrittenBytes bytes;
  const std::int64_t trainable = written(Quantity::parameters);
  bytes.weights = trainable;
  if (layout.averages) bytes.state += trainable;
  if (!layout.factored) bytes.state += std::ssize(layout.states) * written(Quantity::states);
  if (first_replica) {
    for (const FlatEntry& entry : layout.parameters) {
      if (!is_first_holder(program, rank, entry)) continue;
      if (entry.gradient == no_tensor) bytes.weights += entry.count;
      if (layout.factored) bytes.state += std::ssize(layout.states) * entry.factors.count();
    }
    for (const FlatTensor& statistic : layout.statistics) {
      const Tensor& tensor = program.tensor(statistic.tensor);
      if (is_first_holder(tensor, rank)) bytes.weights += tensor.type.shape.count();
    }
  }
  bytes.weights *= size_of(DType::float32);
  bytes.state *= size_of(DType::float32);
  return bytes;
}

}  // namespace trainctl
