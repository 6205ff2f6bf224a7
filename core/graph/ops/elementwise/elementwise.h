// Computes programs of elementwise functions of broadcast tensors, which expressions consist of, and their gradients.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/expression/elementwise_program.h"
#include "core/graph/op.h"

namespace trainctl {

// The size of a dimension of the outputs that is 1 in all inputs.
struct ExpandedDimension {
  int from_last = 0;  // the last dimension is 0
  std::int64_t size = 1;

  bool operator==(const ExpandedDimension&) const = default;
};

// y[r] = result r of the program. Inputs: tensors of float32, bfloat16, float16, int32 or uint8, which are broadcast as
// in NumPy: dimensions are aligned at the last one, and a dimension of size 1 or a missing one is repeated. Outputs:
// one for each result, of the broadcast shape and its own dtype. The computation is in float32. In place on inputs of
// the outputs' shape and dtype.
struct Elementwise final : OpDef {
  ElementwiseProgram program;
  std::vector<DType> dtypes;                // of the results
  std::vector<ExpandedDimension> expanded;  // dimensions that no input has
  std::vector<int> linear;  // the inputs in which all results are linear, taken together: gradients of the outputs

  Elementwise(ElementwiseProgram p, std::vector<DType> of_results)
      : program(std::move(p)), dtypes(std::move(of_results)) {}
  std::string_view kind() const override { return "elementwise"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
