// Segments of a program: their names, and where they are.
#include "core/program/program.h"

#include <algorithm>

#include "core/base/error.h"

namespace trainctl {

std::string_view name_of(Phase phase, Variant variant) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return variant == Variant::first        ? "backward"
             : variant == Variant::accumulate ? "backward_accumulate"
                                              : "backward_last";
    case Phase::update:
      return "update";
    case Phase::copies:
      return "copies";
  }
  require(false, "a segment of a known phase");
  return {};
}

int Program::find(Phase phase) const {
  const auto found = std::find_if(segments.begin(), segments.end(),
                                  [phase](const Segment& segment) { return segment.phase == phase; });
  return found == segments.end() ? -1 : static_cast<int>(found - segments.begin());
}

}  // namespace trainctl
