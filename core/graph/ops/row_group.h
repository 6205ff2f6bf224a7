// Runs elementwise ops and reductions of rows together, so that what one op writes stays in the cache for the next one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// Computes the same as its ops, which are Elementwise, Reduce over the last dimensions, or sums over all rows
// (is_sum_of_rows()). The tensors that the first two write begin with the same dimensions, those of the rows, and no
// value of them depends on another row. No op reads a sum over all rows. Inputs and outputs: those of the ops. Only
// lowering creates this op (core/compile/row_groups.h).
struct RowGroup final : OpDef {
  std::vector<SubOp> ops;
  int inputs_count = 0, outputs_count = 0;
  int row_dimensions = 1;  // the number of leading dimensions that count rows

  std::string_view kind() const override { return "row_group"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<SubOp> decomposition() const override { return ops; }

  // The types of all tensors of the ops, in the order of their numbers.
  std::vector<TensorType> types(std::span<const TensorType> inputs) const;
  // The sizes of the dimensions that count rows, for the types of all tensors.
  std::vector<std::int64_t> row_sizes(const std::vector<TensorType>& types) const;
};

// Whether an op adds up all rows of a float32 tensor, which are its first `row_dimensions` dimensions.
bool is_sum_of_rows(const OpDef& def, const TensorType& input, std::int64_t row_dimensions);

// For each input of an op, whether all rows read the whole tensor; otherwise each row reads its own row of the tensor.
// No value if the op cannot be in a group whose tensors begin with the dimensions `rows`.
std::optional<std::vector<bool>> inputs_of_all_rows(const OpDef& def, std::span<const TensorType> inputs,
                                                    std::span<const std::int64_t> rows);

}  // namespace trainctl
