// Counts the bytes of text for which the targets of a language model stand, for the metric bits_per_byte.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// The number of bytes of text for which each token stands, by id. Tokens beyond the table stand for no text.
using ByteCounts = std::shared_ptr<const std::vector<float>>;

// Inputs: targets int32 [N, P...]; weights float32 [N] or [N, P...]. Outputs: the sum of the targets' bytes, each times
// the weight of its position or sample, float32 scalar (role reduced).
struct TokenBytes final : OpDef {
  ByteCounts bytes;
  bool accumulate = false;  // add to the output instead of overwriting it

  TokenBytes(ByteCounts counts, bool add) : bytes(std::move(counts)), accumulate(add) {}
  std::string_view kind() const override { return "token_bytes"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
