// Ops that move values without computing: concatenation, splitting, changes of shape, of dtype and of physical layout.
#pragma once

#include "core/graph/op.h"
#include "core/tensor/layout.h"

namespace trainctl {

// Inputs: two or more tensors, equal in all dimensions but the last. Outputs: the inputs side by side along the last
// dimension.
struct Concatenate final : OpDef {
  std::string_view kind() const override { return "concatenate"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: x. Outputs: one part of x along the last dimension for each of `sizes`.
struct Split final : OpDef {
  std::vector<std::int64_t> sizes;

  explicit Split(std::vector<std::int64_t> s) : sizes(std::move(s)) {}
  std::string_view kind() const override { return "split"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// Inputs: x. Outputs: the same values under another shape; an alias of x, so no kernel runs.
struct Reshape final : OpDef {
  Shape shape;

  explicit Reshape(Shape s) : shape(std::move(s)) {}
  std::string_view kind() const override { return "reshape"; }
  OpTrait trait() const override { return OpTrait::alias; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::shared_ptr<const OpDef> on_shard(std::span<const TensorType> inputs, std::span<const std::optional<int>> split,
                                        const ShardPosition& ranks) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The same tensor in another physical layout; lowering inserts it where a producer and a consumer disagree, and to
// write the compute copies of parameters (which may change the dtype as well). Inputs: x, in any layout. Outputs: the
// same values in the layout `to`.
struct Reorder final : OpDef {
  Layout to;

  explicit Reorder(Layout layout) : to(std::move(layout)) {}
  std::string_view kind() const override { return "reorder"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// Inputs: x. Outputs: the same values in another dtype (float32, bfloat16; rounding to nearest even).
struct Cast final : OpDef {
  DType to;

  explicit Cast(DType dtype) : to(dtype) {}
  std::string_view kind() const override { return "cast"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
