// Tracks which compute copies are equal to the current weights.
#include "core/exec/fresh_copies.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/graph/ops/training/moving_average.h"
#include "core/graph/ops/training/restore.h"

namespace trainctl {
namespace {

bool trains(const ParameterLayout& flat, TensorId parameter) {
  const auto entry = std::find_if(flat.parameters.begin(), flat.parameters.end(),
                                  [&](const FlatEntry& e) { return e.parameter == parameter; });
  return entry != flat.parameters.end() && entry->offset < flat.trainable_count;
}

}  // namespace

std::set<std::int64_t> moved_parameters(const PlacedProgram& placed) {
  std::set<std::int64_t> offsets;
  for (const PlacedSegment& segment : placed.segments) {
    for (const PlacedOp& op : segment.ops) {
      const auto* average = op.op.get_if<MovingAverage>();
      const bool is_teacher = average != nullptr && average->has_initial_values;
      if (is_teacher || op.op.get_if<Restore>() != nullptr) offsets.insert(placed.tensor(op.op.outputs[0]).offset);
    }
  }
  return offsets;
}

FreshCopies::FreshCopies(const std::vector<PlacedProgram>& programs) {
  std::map<std::int64_t, std::size_t> numbers;  // key: the offset in the region; value: the copy's number in fresh_
  std::set<std::int64_t> moved;
  for (const PlacedProgram& placed : programs) moved.merge(moved_parameters(placed));
  for (std::size_t i = 0; i < programs.size(); ++i) {
    auto& copies = copies_.emplace_back();
    for (const ComputeCopy& copy : programs[i].copies) {
      const std::int64_t offset = programs[i].tensor(copy.tensor).offset;
      const std::size_t number = numbers.try_emplace(offset, numbers.size()).first->second;
      const bool changes =
          trains(programs[i].program.flat, copy.parameter) || moved.contains(programs[i].tensor(copy.parameter).offset);
      copies.push_back({number, changes, copy.updated});
    }
  }
  fresh_.resize(numbers.size());
}

void FreshCopies::trained(int program) {
  for (const auto& copies : copies_) {
    for (const Copy& copy : copies) {
      if (copy.trains) fresh_[copy.number] = false;
    }
  }
  for (const Copy& copy : copies_[static_cast<std::size_t>(program)]) {
    if (copy.updated) fresh_[copy.number] = true;
  }
}

void FreshCopies::changed() { std::fill(fresh_.begin(), fresh_.end(), 0); }

}  // namespace trainctl
