// Dropout of elements, channels or samples.
#pragma once

#include <cstdint>
#include <optional>

#include "core/graph/ops/reshaping/columns.h"

namespace trainctl {

// The unit that dropout keeps or zeroes as a whole: the mask has one value for each unit.
enum class DropoutUnit { element, channel, sample };

// y = x * mask / (1 - rate). The mask is a function of (seed, step, sample number, layer, element): element e of a
// sample uses word e % 4 of RandomKey{seed, Purpose::dropout, step, layer}.block(sample, e / 4) and is kept if
// uniform01(word) >= rate. e is the index in the whole sample, even if x is a shard. If whole channels are dropped, e
// is the index of the channel (Tompson et al., 2015: spatial dropout); if whole samples are dropped, e is 0 (Huang et
// al., 2016: stochastic depth). Inputs: x [N, ...], sample numbers int64 [N], step int64 scalar. Outputs: y, like x. In
// place. Its gradient is the same op applied to dy.
struct Dropout final : OpDef {
  float rate = 0;
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;  // name_hash of the layer's path
  DropoutUnit unit = DropoutUnit::element;
  std::optional<ColumnRange> columns;  // the range of a shard x along `dimension`; empty: x is whole
  int dimension = -1;                  // -1: the last one

  Dropout(float r, std::uint64_t s, std::uint32_t l, DropoutUnit u = DropoutUnit::element,
          std::optional<ColumnRange> p = {}, int d = -1)
      : rate(r), seed(s), layer(l), unit(u), columns(p), dimension(d) {}

  // The elements of a sample that a shard x holds, as runs of elements with consecutive numbers: element e of x has
  // number e / length * stride + first + e % length. `x`: the shape of the shard.
  struct Runs {
    std::int64_t length = 0, stride = 0, first = 0;
  };
  Runs runs(const Shape& x) const;
  std::string_view kind() const override { return "dropout"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::shared_ptr<const OpDef> on_shard(std::span<const TensorType> inputs, std::span<const std::optional<int>> split,
                                        const ShardPosition& ranks) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
