// Finds the first difference between two traces of one step.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/exec/observe/step_trace.h"
#include "core/tensor/difference.h"

namespace trainctl {

// A tensor that an op wrote with different values in two traces.
struct TraceDifference {
  std::string segment, op, tensor;
  int write = 0;  // see TraceRecord
  bool by_sample =
      false;  // whether samples are compared one by one; otherwise values computed from several samples are compared
  std::vector<std::int64_t> samples;  // samples with different values
  std::size_t compared = 0;           // number of samples, or sets of samples, that have values in both traces
};

struct TraceComparison {
  std::optional<TraceDifference> first;  // first difference in the order of `a`
  std::size_t equal = 0;                 // number of earlier writes that are equal in both traces
  std::size_t incomparable = 0;          // number of earlier writes without common samples
};

// Compares the values that ops wrote for the same samples. A trace contains the records of all ranks, in any order.
// Records that only one trace has (ops that a strategy adds, shards of tensors) are left out.
TraceComparison compare(const std::vector<TraceRecord>& a, const std::vector<TraceRecord>& b);

// Returns how much the values of that tensor differ, given traces that hold its values.
Difference difference_of(const TraceDifference& found, const std::vector<TraceRecord>& a,
                         const std::vector<TraceRecord>& b);

}  // namespace trainctl
