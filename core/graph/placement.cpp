// Describes placements as text.
#include "core/graph/placement.h"

#include "core/base/format.h"

namespace trainctl {
namespace {

std::string name_or_number(std::span<const std::string_view> names, const char* word, std::size_t number) {
  return number < names.size() ? std::string(names[number]) : format("{} {}", word, number);
}

}  // namespace

std::string PlacementQuery::input_name(std::size_t input) const { return name_or_number(input_names, "input", input); }

std::string PlacementQuery::output_name(std::size_t output) const {
  return name_or_number(output_names, "output", output);
}

std::vector<Placement> placed(const Placement& placement, std::initializer_list<MeshAxis> axes) {
  std::vector<Placement> placements(mesh_axes, replicated);
  for (const MeshAxis axis : axes) placements[static_cast<std::size_t>(axis)] = placement;
  return placements;
}

std::string to_string(const Placement& placement) {
  switch (placement.kind) {
    case Placement::Kind::replicated:
      return "replicated";
    case Placement::Kind::split:
      return format("split along dimension {}", placement.dimension);
    case Placement::Kind::partial:
      return "partial";
    case Placement::Kind::varying:
      return "varying";
  }
  return {};
}

}  // namespace trainctl
