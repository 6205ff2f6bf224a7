// The ops between the gradients and the optimizer: zeroing, agreement, scaling, the norm.
//
// These ops work on flat regions: one tensor of role parameter, gradient (its tail: role reduced) or state covers a
// whole region, and the tensors of single parameters are views of it. Counts and offsets are elements.
#pragma once

#include <utility>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// Zeroes the gradients and sums of a rank that has no samples in this step, or a sum to which this rank adds nothing.
// Outputs: the gradient region, or the sum.
struct ZeroGradients final : OpDef {
  std::int64_t count = 0;

  explicit ZeroGradients(std::int64_t c) : count(c) {}
  std::string_view kind() const override { return "zero_gradients"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// y = x with zeros in gaps: those between gradients that lie one behind the other, after their memory has held
// something else. Input and output: float32 [n].
struct ZeroGaps final : OpDef {
  struct Gap {
    std::int64_t first = 0, count = 0;  // elements

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

// Fills an input of a micro-batch without samples: with zeros, also its weights, and with no_sample
// (core/tensor/sample_numbers.h) where it has the numbers of samples. Outputs: the tensor.
struct ZeroInput final : OpDef {
  TensorType type;
  bool numbers_samples = false;

  explicit ZeroInput(TensorType t, bool numbers = false) : type(std::move(t)), numbers_samples(numbers) {}
  // What each byte becomes.
  int fill() const { return numbers_samples ? 0xff : 0; }
  std::string_view kind() const override { return "zero_input"; }
  std::vector<TensorType> outputs(std::span<const TensorType>) const override { return {type}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// The flags that the ranks exchange in every step. Each is summed over the ranks: > 0 means "on at least one rank".
enum AgreeFlag : int { agree_not_finite = 0, agree_stop = 1, agree_flags = 2 };

// The stop request of a rank that has no data for this step; larger than the requests of all ranks together.
inline constexpr float abandon_request = 1 << 20;

// Inputs: the losses' sums, at most 16, then the host's stop request (float32 scalars). Outputs: the flags
// [agree_flags] (role reduced); a loss that is not finite raises agree_not_finite, and so does a rank without data,
// whose stage of a pipeline may have no loss: either leaves out the update.
struct Agree final : OpDef {
  std::string_view kind() const override { return "agree"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// y = factor * x. Scales a loss gradient whose values are too small for float16, and the count, whose division then
// removes the factor. Inputs: x, the factor (float32 scalar). Outputs: y, of x's type.
struct Scale final : OpDef {
  std::string_view kind() const override { return "scale"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The L2 norm of gradient / count over [0, elements) of the gradient region, count being the reduced sum of weights (a
// sum in fixed order, float64 inside). Inputs: the gradient region, count. Outputs: float32 scalar.
struct GradientNorm final : OpDef {
  std::int64_t elements = 0;

  explicit GradientNorm(std::int64_t e) : elements(e) {}
  std::string_view kind() const override { return "gradient_norm"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// A range of one of an op's inputs.
struct InputRange {
  int input = 0;
  std::int64_t offset = 0;
  std::int64_t count = 0;
};

// The sum of the squares of a rank's own part of the gradient (in fixed order, float64 inside): the first half of a
// norm whose parts lie on several ranks. Inputs: gradients, float32. Outputs: float32 scalar, partial along the axes.
struct SumOfSquares final : OpDef {
  std::vector<InputRange> ranges;  // what is summed
  std::vector<MeshAxis> axes;      // along which other ranks hold other parts of the gradient

  SumOfSquares(std::vector<InputRange> r, std::vector<MeshAxis> a) : ranges(std::move(r)), axes(std::move(a)) {}
  std::string_view kind() const override { return "sum_of_squares"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The most elements whose squares make one sum of ChunkSquares.
inline constexpr std::int64_t norm_chunk = 1024;

// A range of one of an op's inputs, cut into chunks of norm_chunk elements and a smaller last one.
struct ChunkRange {
  InputRange of;
  std::int64_t chunk = 0;  // the number of its first chunk among all chunks
};

// The sum of the squares of each chunk (float64 inside) where this rank has the chunk, and zeros elsewhere. Adding such
// vectors is exact where each chunk lies on one rank alone, so that a norm made of them has the same bits whoever holds
// which chunks. Inputs: the gradient or a rank's parts of it, float32. Outputs: float32 [chunks], partial along the
// axes.
struct ChunkSquares final : OpDef {
  std::vector<ChunkRange> ranges;  // no two have a chunk in common
  std::int64_t chunks = 0;
  std::vector<MeshAxis> axes;  // along which other ranks hold other parts of the gradient

  std::string_view kind() const override { return "chunk_squares"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The sum of a vector's elements in fixed order (float64 inside). Inputs: float32 [n]. Outputs: float32 scalar.
struct SumOfChunks final : OpDef {
  std::string_view kind() const override { return "sum_of_chunks"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The second half of such a norm: the root of a sum of squares, divided by count; 0 where count is 0. Inputs: the sum
// of squares, count (float32 scalars, reduced). Outputs: float32 scalar.
struct NormOfSquares final : OpDef {
  std::string_view kind() const override { return "norm_of_squares"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
