// Names of collectives, and the division of data into ranges.
#include "parallel/comm/call.h"

#include <algorithm>

#include "core/base/format.h"

namespace trainctl {

std::string_view name_of(CallKind kind) {
  switch (kind) {
    case CallKind::all_reduce:
      return "all_reduce";
    case CallKind::reduce_scatter:
      return "reduce_scatter";
    case CallKind::all_gather:
      return "all_gather";
    case CallKind::all_to_all:
      return "all_to_all";
    case CallKind::broadcast:
      return "broadcast";
    case CallKind::send:
      return "send";
    case CallKind::receive:
      return "receive";
    case CallKind::barrier:
      return "barrier";
  }
  return "?";
}

std::string describe(const Call& call) {
  if (call.kind == CallKind::barrier) return "barrier";
  return format("{} of {} bytes", name_of(call.kind), call.data.bytes());
}

ElementRange range_of(std::int64_t count, int index, int ranges) {
  constexpr std::int64_t grain = 16;
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t first = std::min(count, grains * index / ranges * grain);
  const std::int64_t end = std::min(count, grains * (index + 1) / ranges * grain);
  return {first, end - first};
}

}  // namespace trainctl
