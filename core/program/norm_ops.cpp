// Ops that sum the squares of the gradient ranges that a rank updates.
#include "core/program/norm_ops.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/graph/ops/collectives.h"
#include "core/graph/ops/training/update.h"
#include "core/program/placements.h"

namespace trainctl {
namespace {

std::vector<LocalExtent> counted_extents(const Program& program, const MeshRank& rank) {
  std::vector<LocalExtent> extents = program.flat.local_extents();
  std::erase_if(extents, [&](const LocalExtent& extent) { return !is_first_holder(program, rank, *extent.entry); });
  return extents;
}

// The ranges of the buckets' gradients for which this rank adds up the squares; InputRange::input is the number of the
// bucket. The gaps between parameters are left out if they may contain values other than zero, as in sums of shards.
std::vector<InputRange> norm_ranges(const Program& program, const MeshRank& rank) {
  const bool gaps_are_zero = !program.flat.shares(Quantity::states);
  std::vector<InputRange> ranges;
  for (const LocalExtent& extent : counted_extents(program, rank)) {
    const auto bucket = static_cast<int>(extent.bucket);
    const std::int64_t count = gaps_are_zero ? round_up(extent.count, flat_alignment) : extent.count;
    const bool joins =
        !ranges.empty() && ranges.back().input == bucket && ranges.back().offset + ranges.back().count == extent.offset;
    if (!joins) ranges.push_back({bucket, extent.offset, 0});
    ranges.back().count = extent.offset + count - ranges.back().offset;
  }
  return ranges;
}

std::vector<TensorId> gradients_of_buckets(const Program& program) {
  std::vector<TensorId> gradients;
  for (const FlatBucket& bucket : program.flat.buckets) gradients.push_back(bucket.gradient);
  return gradients;
}

// Sets to zero the contribution of a stage without trainable parameters to sums of squares over the axes.
Op no_squares(Program& program, TensorId squares, const std::vector<MeshAxis>& axes) {
  Tensor& tensor = program.tensors[static_cast<std::size_t>(squares)];
  tensor.placements.assign(mesh_axes, replicated);
  for (const MeshAxis axis : axes) tensor.placements[static_cast<std::size_t>(axis)] = partial;
  return {std::make_shared<ZeroGradients>(tensor.type.shape.count()), {}, {squares}, "gradient_squares", {}};
}

}  // namespace

std::vector<MeshAxis> axes_of_norm(const ParameterLayout& layout, const MeshRank& rank) {
  std::vector<MeshAxis> axes;
  if (layout.shares(Quantity::states)) axes.push_back(MeshAxis::data);
  for (MeshAxis axis : {MeshAxis::pipeline, MeshAxis::tensor}) {
    if (rank.size(axis) > 1) axes.push_back(axis);
  }
  return axes;
}

Op local_squares(Program& program, const MeshRank& rank, TensorId squares, const std::vector<MeshAxis>& axes) {
  std::vector<TensorId> gradients = gradients_of_buckets(program);
  if (gradients.empty()) return no_squares(program, squares, axes);
  auto def = std::make_shared<SumOfSquares>(norm_ranges(program, rank), axes);
  return {std::move(def), std::move(gradients), {squares}, "gradient_squares", {}};
}

std::vector<Op> squares_by_chunk(Program& program, const MeshRank& rank, TensorId squares,
                                 const std::vector<MeshAxis>& axes) {
  const ParameterLayout& flat = program.flat;
  const std::vector<LocalExtent> extents = counted_extents(program, rank);
  auto def = std::make_shared<ChunkSquares>();
  auto extent = extents.begin();
  std::int64_t chunk = 0;
  for (const FlatEntry& entry : flat.parameters) {
    if (entry.gradient == no_tensor) continue;
    if (extent != extents.end() && extent->entry == &entry) {
      def->ranges.push_back(
          {{static_cast<int>(extent->bucket), extent->offset, extent->count}, chunk + extent->first / norm_chunk});
      ++extent;
    }
    chunk += divide_up(entry.count, norm_chunk);
  }
  def->chunks = std::max<std::int64_t>(chunk, 1);
  def->axes = axes;
  const TensorId chunks = program.add("gradient_squares/chunks", {def->chunks}, DType::float32, Role::activation);
  std::vector<TensorId> gradients = gradients_of_buckets(program);
  std::vector<Op> ops;
  if (gradients.empty()) {
    ops.push_back(no_squares(program, chunks, axes));
  } else {
    ops.push_back({std::move(def), std::move(gradients), {chunks}, "gradient_squares", {}});
  }
  if (flat.shares(Quantity::states)) {
    ops.push_back({std::make_shared<AllReduce>(MeshAxis::data), {chunks}, {chunks}, "gradient_squares", {}});
  }
  ops.push_back({std::make_shared<SumOfChunks>(), {chunks}, {squares}, "gradient_squares", {}});
  return ops;
}

}  // namespace trainctl
