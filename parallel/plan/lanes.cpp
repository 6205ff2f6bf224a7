// Communications in lanes.
#include "parallel/plan/lanes.h"

#include "core/graph/ops/collectives.h"

namespace trainctl {
namespace {

constexpr int backward_lane = mesh_axes;

int lane_of(const Communication& communication, bool on_processors) {
  const auto* op = communication.op->get_if<Collective>();
  const bool backward =
      communication.axis == MeshAxis::pipeline && op != nullptr && op->on_channel() == Channel::backward;
  return backward && on_processors ? backward_lane : static_cast<int>(communication.axis);
}

}  // namespace

Lanes::Lanes(const RankList& list, bool on_processors) {
  for (std::size_t place = 0; place < list.all.size(); ++place) {
    std::vector<int>& of_lane = places[index(lane.emplace_back(lane_of(list.all[place], on_processors)))];
    number.push_back(static_cast<int>(of_lane.size()));
    if (list.all[place].kind != Communication::Kind::wait) of_lane.push_back(static_cast<int>(place));
  }
}

}  // namespace trainctl
