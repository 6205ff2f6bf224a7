// Placements of the ops that change gradients before the update.
#include "core/graph/ops/training/gradients.h"

#include "core/base/format.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

std::string to_text(const std::vector<GradientMatrix>& matrices) {
  std::string text;
  for (const GradientMatrix& matrix : matrices) {
    text += format("{}{}: {}x{}", text.empty() ? "" : ", ", matrix.offset, matrix.rows, matrix.columns);
  }
  return text;
}

}  // namespace

std::string CentralizeGradients::attributes() const { return AttributeText().word(to_text(matrices)).text(); }

OutputPlacements CentralizeGradients::placements(const PlacementQuery& query) const {
  const std::string whole = none_split(query.input_types[0]);
  return place_by({{whole}, {whole}}, query);
}

std::string ClipGradients::attributes() const {
  AttributeText text;
  if (norm > 0) text.value("norm", norm);
  if (value > 0) text.value("value", value);
  return text.word(to_text(matrices)).text();
}

// Clipping by value works on any shard of a gradient, and clipping by norm on whole gradients only.
OutputPlacements ClipGradients::placements(const PlacementQuery& query) const {
  const TensorType& type = query.input_types[0];
  const std::string region = norm > 0 ? none_split(type) : every_dimension(type);
  return place_by({{region, ""}, {region}}, query);
}

}  // namespace trainctl
