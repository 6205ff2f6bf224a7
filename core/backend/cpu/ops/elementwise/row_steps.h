// Arranges the ops of a row group in few steps, each of which reads its tensors once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/expression/elementwise_program.h"
#include "core/graph/ops/reduce.h"
#include "core/graph/ops/row_group.h"

namespace trainctl::cpu {

// A sum of a result of a step: of each row, or over all rows.
struct RowStepSum {
  std::size_t result = 0;
  const Reduce* reduce = nullptr;
  int to = -1;             // the tensor of the sums
  std::int64_t count = 1;  // of each row: the values that are added; over all rows: the columns
  bool of_rows = true;     // of each row
};

// Either an elementwise program with the functions of all ops whose values have the same shape and that need no more
// than what earlier steps have computed, and the sums of its results, or one reduction. Tensors have their numbers in
// the group.
struct RowStep {
  static constexpr std::size_t most_sums = 16;

  Shape shape;  // of the program's values, for all rows
  ElementwiseProgram program;
  std::vector<int> inputs, results;
  std::vector<DType> dtypes;     // of the results of the program; of the reduction: that of its input
  std::vector<bool> is_written;  // of each result: whether other steps, or ops outside of the group, read it
  std::vector<RowStepSum> sums;
  const Reduce* reduce = nullptr;  // of inputs[0] to results[0], without a program
};

// The values are those of the ops to the bit: functions are joined to programs, but not simplified. `types` are those
// of all tensors. The steps refer to the ops of `def`.
std::vector<RowStep> row_steps(const RowGroup& def, const std::vector<TensorType>& types);

}  // namespace trainctl::cpu
