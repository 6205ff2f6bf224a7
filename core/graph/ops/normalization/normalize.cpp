// Placements and gradients of Normalize.
#include "core/graph/ops/normalization/normalize.h"

#include <algorithm>

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string Normalize::attributes() const {
  AttributeText text;
  for (const float value : scale) text.value("scale", value);
  for (const float value : offset) text.value("offset", value);
  return text.text();
}

OutputPlacements Normalize::placements(const PlacementQuery& query) const {
  const bool by_channel = std::max(scale.size(), offset.size()) > 1;
  return by_channel ? place_rows(query, false) : place_elementwise(query);
}

void Normalize::differentiate(const Op& op, Differentiator& differentiator) const {
  SampleFormat format{{}, scale, std::vector<float>(scale.size())};
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::make_shared<Normalize>(to, format), {dy}, op)[0]);
}

}  // namespace trainctl
