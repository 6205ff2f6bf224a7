// Placements in words.
#include "core/graph/placement.h"

#include "core/base/format.h"

namespace trainctl {

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
