// Which of a stage's communications run one after the other.
#pragma once

#include <array>
#include <vector>

#include "parallel/strategies/rendezvous/rank_lists.h"

namespace trainctl {

// Those along one axis do; on processors the pipeline's backward channel has a lane of its own (parallel/mesh/axes.h).
inline constexpr int lane_count = mesh_axes + 1;

struct Lanes {
  std::vector<int> lane;                            // of each communication of the list; of a wait without meaning
  std::vector<int> number;                          // of each but waits: how many precede it in its lane
  std::array<std::vector<int>, lane_count> places;  // in the list, by lane

  Lanes(const RankList& list, bool on_processors);
};

}  // namespace trainctl
