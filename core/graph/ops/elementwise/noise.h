// Gaussian noise, which is added to activations in training.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/kernel_function.h"
#include "core/graph/op.h"

namespace trainctl {

// y = x + stddev * z, with a standard normal number z for each element. z is a function of (seed, step, sample number,
// layer, element): standard_normal() of word e % 4 of RandomKey{seed, Purpose::noise, step, layer}.block(sample, e / 4)
// for element e of a sample. Inputs: x [N, ...], sample numbers int64 [N], step int64 scalar. Outputs: y, like x. In
// place. Its gradient is the identity.
struct GaussianNoise final : OpDef {
  float stddev = 0;
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;  // name_hash of the layer's path

  GaussianNoise(float s, std::uint64_t key, std::uint32_t l) : stddev(s), seed(key), layer(l) {}
  std::string_view kind() const override { return "gaussian_noise"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Converts the upper 24 bits of a word to a standard normal number by the inverse of the distribution function: Giles
// (2010), "Approximating the erfinv function", in float32, with relative error 4e-7. Math provides log().
template <class Math>
TRAINCTL_KERNEL_FUNCTION float standard_normal(std::uint32_t word) {
  const float x = (static_cast<float>(static_cast<std::int32_t>(word >> 8)) + 0.5f) * 0x1p-23f - 1.0f;
  const float w = -Math::log((1.0f - x) * (1.0f + x));
  const float c = w - 2.5f;
  float central = 2.81022636e-08f;
  central = 3.43273939e-07f + central * c;
  central = -3.5233877e-06f + central * c;
  central = -4.39150654e-06f + central * c;
  central = 0.00021858087f + central * c;
  central = -0.00125372503f + central * c;
  central = -0.00417768164f + central * c;
  central = 0.246640727f + central * c;
  central = 1.50140941f + central * c;
  const float t = sqrtf(w) - 3.0f;
  float tail = -0.000200214257f;
  tail = 0.000100950558f + tail * t;
  tail = 0.00134934322f + tail * t;
  tail = -0.00367342844f + tail * t;
  tail = 0.00573950773f + tail * t;
  tail = -0.0076224613f + tail * t;
  tail = 0.00943887047f + tail * t;
  tail = 1.00167406f + tail * t;
  tail = 2.83297682f + tail * t;
  return 1.41421356f * x * (w < 5.0f ? central : tail);
}

}  // namespace trainctl
