// The names of segments, and look-ups in a program.
#include "core/program/program.h"

#include <algorithm>

#include "core/base/error.h"

namespace trainctl {

std::string_view name_of(Phase phase, Variant variant) {
  switch (phase) {
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
  require(false, "a segment of a known phase");
  return {};
}

std::int64_t FlatLayout::kept_of(const FlatEntry& entry) const {
  const auto of_states = static_cast<std::int64_t>(states.size()) * (factored ? entry.factors.count() : entry.count);
  return of_states + (averages ? entry.count : 0);
}

std::int64_t FlatLayout::gradient_offset(TensorId tensor) const {
  for (const SlotPlace& place : in_slots) {
    if (place.tensor == tensor) return gradient_offset(place.like) + place.offset;
  }
  for (const FlatEntry& entry : parameters) {
    if (entry.gradient == tensor) return entry.offset;
  }
  for (const FlatPlace& place : reduced) {
    if (place.tensor == tensor) return place.offset;
  }
  require(false, "a tensor of the gradient region");
  return 0;
}

int FlatLayout::gradient_slot(TensorId tensor) const {
  const auto found = std::find_if(in_slots.begin(), in_slots.end(),
                                  [tensor](const SlotPlace& place) { return place.tensor == tensor; });
  return found == in_slots.end() ? 0 : found->slot;
}

TensorId Program::add(std::string name, Shape shape, DType dtype, Role role) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = {std::move(shape), dtype};
  tensor.role = role;
  tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors.size() - 1);
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
