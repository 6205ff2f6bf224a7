// Shape and placement of Arange.
#include "core/graph/ops/arange.h"

#include "core/graph/ops/attributes.h"

namespace trainctl {

std::string Arange::attributes() const { return AttributeText().value("count", count).text(); }

std::vector<TensorType> Arange::outputs(std::span<const TensorType>) const { return {{{count}, DType::float32}}; }

OutputPlacements Arange::placements(const PlacementQuery&) const { return {{replicated}, {}}; }

}  // namespace trainctl
