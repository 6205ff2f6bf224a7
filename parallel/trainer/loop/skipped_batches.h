// The batches that a run skips since their steps were not finite.
#pragma once

#include <cstdint>
#include <set>

#include "core/exec/interfaces/snapshot_metadata.h"

namespace trainctl {

// Equal on all ranks, and part of a checkpoint's metadata, so that a resumed run skips the same batches. Steps are
// counted from 0.
class SkippedBatches {
 public:
  // Adds the step whose batch is skipped, without being computed, when the run comes to it again.
  void add(std::int64_t step) { steps_.insert(step); }
  void remove(std::int64_t step) { steps_.erase(step); }
  bool contains(std::int64_t step) const { return steps_.contains(step); }
  // The number of these steps from `step` on.
  std::int64_t count_from(std::int64_t step) const { return std::distance(steps_.lower_bound(step), steps_.end()); }
  // The last step before `step` that is not skipped; -1 if there is none.
  std::int64_t last_computed_before(std::int64_t step) const;

  // Counts a step that was computed and whose update was left out, and a step that was finite.
  void count_left_out() { ++in_a_row_; }
  void count_finite() { in_a_row_ = 0; }
  // The number of steps that were left out since the last finite step.
  std::int64_t in_a_row() const { return in_a_row_; }

  void save(SnapshotMetadata& metadata) const;
  void restore(const SnapshotMetadata& metadata);

 private:
  std::set<std::int64_t> steps_;
  std::int64_t in_a_row_ = 0;
};

}  // namespace trainctl
