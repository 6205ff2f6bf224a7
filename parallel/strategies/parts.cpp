// Parts of parameters, and ops on parts.
#include "parallel/strategies/parts.h"

#include <utility>
#include <vector>

#include "core/graph/ops/elementwise/dropout.h"
#include "core/graph/ops/reshaping/shaping.h"

namespace trainctl {

Tensor part_along(Tensor whole, std::int64_t dimension, int ranks, int place) {
  const Shape shape = whole.type.shape;
  std::vector<std::int64_t> offsets(shape.sizes().size(), 0), sizes = shape.sizes();
  const auto along = static_cast<std::size_t>(dimension);
  sizes[along] /= ranks;
  offsets[along] = sizes[along] * place;
  whole.type.shape = Shape(sizes);
  whole.part = TensorPart{shape, TensorExtent::box(shape, std::move(offsets), std::move(sizes))};
  whole.placements.assign(mesh_axes, replicated);
  whole.placements[static_cast<std::size_t>(MeshAxis::tensor)] = split_along(static_cast<int>(dimension));
  return whole;
}

std::shared_ptr<const OpDef> on_part(const Op& op, const Shape& x, int ranks, int place) {
  const std::int64_t columns = x.back() / ranks;
  if (const auto* dropout = op.get_if<Dropout>()) {
    const ColumnPart part{columns * place, x.back()};
    return std::make_shared<Dropout>(dropout->rate, dropout->seed, dropout->layer, dropout->unit, part);
  }
  if (const auto* reshape = op.get_if<Reshape>()) {
    if (reshape->shape.back() != x.back()) return nullptr;
    return std::make_shared<Reshape>(reshape->shape.with_back(columns));
  }
  return op.def;
}

}  // namespace trainctl
