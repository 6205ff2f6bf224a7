// Ops that move values without computing: concatenation, splitting, changes of shape, of dtype and of physical layout.
#pragma once

#include <optional>

#include "core/graph/op.h"
#include "core/tensor/layout.h"

namespace trainctl {

// Inputs: two or more tensors, equal in all dimensions except the last. Outputs: their concatenation along the last
// dimension.
struct Concatenate final : OpDef {
  std::string_view kind() const override { return "concatenate"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: x. Outputs: for each of `sizes`, a slice of x of that size along the last dimension.
struct Split final : OpDef {
  std::vector<std::int64_t> sizes;

  explicit Split(std::vector<std::int64_t> s) : sizes(std::move(s)) {}
  std::string_view kind() const override { return "split"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// Inputs: x. Outputs: the same values with another shape; an alias of x, so that no kernel runs.
struct Reshape final : OpDef {
  Shape shape;
  // If x is split along dimension `x`, the output is split along dimension `y`. Without it, the shapes decide, which
  // fails for shards such as [N, 2 * C / 2] and [N, 2 / 2, C].
  struct Kept {
    int x, y;
  };
  std::optional<Kept> kept;

  explicit Reshape(Shape s, std::optional<Kept> k = {}) : shape(std::move(s)), kept(k) {}
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

// Converts a tensor to another physical layout. Lowering inserts it where a producer and a consumer have different
// layouts, and to write the compute copies of parameters (which may also have another dtype). Inputs: x, in any layout.
// Outputs: the same values in the layout `to`.
struct Reorder final : OpDef {
  Layout to;

  explicit Reorder(Layout layout) : to(std::move(layout)) {}
  std::string_view kind() const override { return "reorder"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// Inputs: x. Outputs: the same values in another dtype (float32 or bfloat16, rounded to nearest even).
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
