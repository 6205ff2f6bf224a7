// Describes one call of a communicator, so that a stream can keep it until the collective runs.
#pragma once

#include <string>

#include "core/backend/communicator.h"

namespace trainctl {

enum class CallKind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  send,
  receive,
  barrier
};

struct Call {
  CallKind kind = CallKind::barrier;
  Reduction reduction = Reduction::sum;
  int peer = 0;  // broadcast: root; send and receive: the other rank
  View data;
  View result;              // all_to_all only: the buffer for the received data
  bool background = false;  // whether the call is made beside the rank's computation, which needs the core
};

// Returns the name of the collective, such as "all_reduce".
std::string_view name_of(CallKind kind);
// Describes the call for messages, such as "all_reduce of 4096 bytes".
std::string describe(const Call& call);

// A range of elements.
struct ElementRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Divides `count` elements into `ranges` ranges and returns number `index`. Boundaries are multiples of 16 elements, so
// that neighbouring ranges rarely share a cache line; the sizes differ by at most 16 elements.
ElementRange range_of(std::int64_t count, int index, int ranges);

}  // namespace trainctl
