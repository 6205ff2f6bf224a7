// The ops between the backward pass and the optimizer: zeroing, agreement of the ranks, scaling, and the gradient norm.
//
// These ops work on flat regions: one tensor of role parameter, gradient (its tail: role reduced) or state covers a
// whole region, and the tensors of single parameters are views of it. Counts and offsets are in elements.
#pragma once

#include <utility>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// Zeroes the gradients and sums of a rank that has no samples in this step, or a sum to which this rank does not
// contribute. Outputs: the gradient region, or the sum.
struct ZeroGradients final : OpDef {
  std::int64_t count = 0;

  explicit ZeroGradients(std::int64_t c) : count(c) {}
  std::string_view kind() const override { return "zero_gradients"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// y = x with zeros in the gaps between consecutive gradients. The gaps of x may contain any values. Input and output:
// float32 [n].
struct ZeroGaps final : OpDef {
  struct Gap {
    std::int64_t first = 0, count = 0;

    bool operator==(const Gap&) const = default;
  };
  std::vector<Gap> gaps;

  explicit ZeroGaps(std::vector<Gap> g) : gaps(std::move(g)) {}
  std::string_view kind() const override { return "zero_gaps"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// Fills an input of a micro-batch that has no samples: with no_sample (core/tensor/sample_numbers.h) if it is the
// tensor of sample numbers, otherwise with zeros. Outputs: the tensor.
struct ZeroInput final : OpDef {
  TensorType type;
  bool numbers_samples = false;

  explicit ZeroInput(TensorType t, bool numbers = false) : type(std::move(t)), numbers_samples(numbers) {}
  // The value of each byte.
  int fill() const { return numbers_samples ? 0xff : 0; }
  std::string_view kind() const override { return "zero_input"; }
  std::vector<TensorType> outputs(std::span<const TensorType>) const override { return {type}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// The flags that the ranks exchange in every step. Flags are summed over the ranks: > 0 means that at least one rank
// set the flag.
enum AgreeFlag : int { agree_not_finite = 0, agree_stop = 1, agree_flags = 2 };

// The value of the stop request of a rank that has no data for this step. It is larger than the sum of the ordinary
// requests of all ranks.
inline constexpr float abandon_request = 1 << 20;

// Inputs: at most 16 sums of losses, then the stop request of the host (float32 scalars). Outputs: the flags
// [agree_flags] (role reduced). A loss that is not finite sets agree_not_finite. A rank without data also sets this
// flag, because its pipeline stage may have no loss. In both cases the update is skipped. If `follows`, the inputs
// begin with the flags and the gradient norm of an earlier update of the step: if that update was skipped, so is this
// one.
struct Agree final : OpDef {
  bool follows = false;

  explicit Agree(bool f = false) : follows(f) {}
  std::string_view kind() const override { return "agree"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// y = factor * x. Scales the gradient of a loss, since its values may be too small for float16, and also the count, so
// that the division by the count removes the factor. Inputs: x, the factor (float32 scalar). Outputs: y, like x.
struct Scale final : OpDef {
  std::string_view kind() const override { return "scale"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The L2 norm of gradient / count over [0, elements) of the gradient region, where count is the reduced sum of weights.
// The sum has a fixed order and is computed in float64. Inputs: the gradient region, count. Outputs: float32 scalar.
struct GradientNorm final : OpDef {
  std::int64_t elements = 0;

  explicit GradientNorm(std::int64_t e) : elements(e) {}
  std::string_view kind() const override { return "gradient_norm"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// A range of elements of one of an op's inputs.
struct InputRange {
  int input = 0;
  std::int64_t offset = 0;
  std::int64_t count = 0;
};

// The sum of squares of a rank's own shard of the gradient, in fixed order and computed in float64: the first step of a
// norm over several ranks. Inputs: gradients, float32. Outputs: float32 scalar, partial along the axes.
struct SumOfSquares final : OpDef {
  std::vector<InputRange> ranges;  // ranges that are summed
  std::vector<MeshAxis> axes;      // axes along which ranks hold different shards of the gradient

  SumOfSquares(std::vector<InputRange> r, std::vector<MeshAxis> a) : ranges(std::move(r)), axes(std::move(a)) {}
  std::string_view kind() const override { return "sum_of_squares"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The maximum number of elements of a chunk in ChunkSquares.
inline constexpr std::int64_t norm_chunk = 1024;

// A range of one of an op's inputs, divided into chunks of norm_chunk elements; the last chunk may be smaller.
struct ChunkRange {
  InputRange of;
  std::int64_t chunk = 0;  // index of its first chunk among all chunks
};

// For each chunk, the sum of squares (computed in float64) if this rank has the chunk, otherwise 0. Adding such vectors
// over ranks is exact if each chunk is on only one rank, so that a norm computed from them is bitwise equal for every
// distribution of the chunks. Inputs: the gradient or a rank's shards of it, float32. Outputs: float32 [chunks],
// partial along the axes.
struct ChunkSquares final : OpDef {
  std::vector<ChunkRange> ranges;  // no two ranges share a chunk
  std::int64_t chunks = 0;         // number of all chunks
  std::vector<MeshAxis> axes;      // axes along which ranks hold different shards of the gradient

  std::string_view kind() const override { return "chunk_squares"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The sum of the elements of a vector, in fixed order and computed in float64. Inputs: float32 [n]. Outputs: float32
// scalar.
struct SumOfChunks final : OpDef {
  std::string_view kind() const override { return "sum_of_chunks"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The last step of a norm over several ranks: the root of a sum of squares, divided by count; 0 if count is 0. Inputs:
// the sum of squares, count (float32 scalars, reduced). Outputs: float32 scalar.
struct NormOfSquares final : OpDef {
  std::string_view kind() const override { return "norm_of_squares"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
