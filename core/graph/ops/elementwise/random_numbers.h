// Random numbers that do not depend on other values, in training and in prediction.
#pragma once

#include <cstdint>

#include "core/graph/op.h"

namespace trainctl {

// y = a random number for each element, a function of (seed, step, sample number, layer, element): standard_normal()
// (noise.h) or uniform01() of word e % 4 of RandomKey{seed, Purpose::numbers, step, layer}.block(sample, e / 4) for
// element e of a sample. Inputs: x [N, ...], of which only N matters, sample numbers int64 [N], step int64 scalar.
// Outputs: y [N, sample...] of `dtype` (float32, bfloat16 or float16). It has no gradient.
struct RandomNumbers final : OpDef {
  enum class Kind { normal, uniform };  // of mean 0 and deviation 1; in [0, 1)

  Kind distribution = Kind::normal;
  Shape sample;  // without the samples
  DType dtype = DType::float32;
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;  // name_hash of the place in the model

  RandomNumbers(Kind of, Shape s, DType d, std::uint64_t key, std::uint32_t l)
      : distribution(of), sample(std::move(s)), dtype(d), seed(key), layer(l) {}
  std::string_view kind() const override { return "random_numbers"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  double reads(std::size_t, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op&, Differentiator&) const override {}
};

}  // namespace trainctl
