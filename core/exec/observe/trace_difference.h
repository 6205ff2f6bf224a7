// Where two traces of one step differ first.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/exec/observe/step_trace.h"
#include "core/tensor/difference.h"

namespace trainctl {

// What an op wrote otherwise in another trace.
struct TraceDifference {
  std::string segment, op, tensor;
  int write = 0;                      // see TraceRecord
  bool by_sample = false;             // samples are compared one by one; else values that several samples gave
  std::vector<std::int64_t> samples;  // whose values differ
  std::size_t compared = 0;           // samples, or sets of samples, for which both traces have the values
};

struct TraceComparison {
  std::optional<TraceDifference> first;  // in the order of `a`
  std::size_t equal = 0;                 // of what was written before it, how much is equal in both traces
  std::size_t incomparable = 0;          // and how much both have, but from no samples in common
};

// Compares what ops wrote for the same samples. The records of a trace are those of all ranks, in any order. What only
// one trace has (ops that a strategy adds, parts of tensors) is left out.
TraceComparison compare(const std::vector<TraceRecord>& a, const std::vector<TraceRecord>& b);

// How much the values of that tensor differ, given traces that hold them.
Difference difference_of(const TraceDifference& found, const std::vector<TraceRecord>& a,
                         const std::vector<TraceRecord>& b);

}  // namespace trainctl
