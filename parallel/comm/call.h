// One call of a communicator as a value: what the stream keeps until the collective runs.
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
  View result;  // all_to_all only: where the parts arrive
};

// "all_reduce".
std::string_view name_of(CallKind kind);
// "all_reduce of 4096 bytes", for messages.
std::string describe(const Call& call);

// Part `index` of `parts` of a count: the first element and how many; sizes differ by one grain at most, where a grain
// is 16 elements, so that neighbours rarely share a cache line.
struct Part {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
Part part_of(std::int64_t count, int index, int parts);

}  // namespace trainctl
