// Shapes and placements of TokenBytes.
#include "core/graph/ops/metrics/token_bytes.h"

#include "core/base/hash.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string TokenBytes::attributes() const {
  return AttributeText()
      .value("tokens", bytes->size())
      .value("table", format("{:016x}", xxh3(bytes->data(), bytes->size() * sizeof(float))))
      .flag("accumulate", accumulate)
      .text();
}

std::vector<TensorType> TokenBytes::outputs(std::span<const TensorType>) const { return {{{}, DType::float32}}; }

OutputPlacements TokenBytes::placements(const PlacementQuery& query) const {
  const std::string targets = every_dimension(query.input_types[0]);
  const std::string weights = targets.substr(0, static_cast<std::size_t>(query.input_types[1].shape.rank()));
  return kept_if(accumulate, place_by({{targets, weights}, {"+" + targets}}, query), query);
}

}  // namespace trainctl
