// Shapes and placements of SpectralNorm.
#include "core/graph/ops/training/spectral_norm.h"

#include "core/base/error.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string SpectralNorm::attributes() const { return AttributeText().value("iterations", iterations).text(); }

std::vector<TensorType> SpectralNorm::outputs(std::span<const TensorType> inputs) const {
  require(inputs.size() == 2 && inputs[1].shape.count() == inputs[0].shape.back(), "spectral_norm: wrong inputs");
  return {inputs[0], inputs[1]};
}

double SpectralNorm::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return static_cast<double>(inputs[0].shape.count()) * (4 * iterations + 1);
}

// Every rank has the whole kernel.
OutputPlacements SpectralNorm::placements(const PlacementQuery& query) const {
  const std::string kernel = none_split(query.input_types[0]), u = none_split(query.input_types[1]);
  return kept(place_by({{kernel, u}, {kernel, u}}, query), query, 0, 2);
}

}  // namespace trainctl
