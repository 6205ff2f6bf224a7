// Names segments and looks up tensors and segments in a program.
#include "core/program/program.h"

#include <algorithm>

#include "core/base/error.h"

namespace trainctl {

std::string_view name_of(Phase phase, Variant variant) {
  switch (phase) {
    case Phase::prepare:
      return "prepare";
    case Phase::count:
      return variant == Variant::first        ? "count"
             : variant == Variant::accumulate ? "count_accumulate"
             : variant == Variant::empty      ? "count_empty"
                                              : "count_last";
    case Phase::forward:
      return variant == Variant::empty ? "forward_empty" : "forward";
    case Phase::backward:
      return variant == Variant::first        ? "backward"
             : variant == Variant::accumulate ? "backward_accumulate"
                                              : "backward_last";
    case Phase::exchange:
      return "exchange";
    case Phase::update:
      return "update";
    case Phase::copies:
      return "copies";
  }
  require(false, "a segment has an unknown phase");
  return {};
}

TensorId Program::add(std::string name, Shape shape, DType dtype, Role role) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = {std::move(shape), dtype};
  tensor.role = role;
  tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors.size() - 1);
}

void Program::prepare(std::vector<Op> ops) {
  if (ops.empty()) return;
  if (streams > 1) schedule.front().waits = true;
  schedule.insert(schedule.begin(), ScheduleItem{static_cast<int>(segments.size()), 0, 0});
  segments.push_back({Phase::prepare, {}, std::move(ops)});
}

std::set<int> Program::segments_of_rest() const {
  std::set<int> segments;
  for (const ScheduleItem& item : schedule) {
    if (is_rest(item)) segments.insert(item.segment);
  }
  return segments;
}

int Program::find(Phase phase) const {
  const auto found = std::find_if(segments.begin(), segments.end(),
                                  [phase](const Segment& segment) { return segment.phase == phase; });
  return found == segments.end() ? -1 : static_cast<int>(found - segments.begin());
}

}  // namespace trainctl
