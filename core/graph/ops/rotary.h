// Rotary position embedding (Su et al., 2021): rotates pairs of values of each head by angles that grow with the
// position.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// Which values of a head form the pairs, for a rotated width R: value i and value i + R / 2 (as in Llama and Hugging
// Face's files), or the values 2 i and 2 i + 1 (as in GPT-J and in the paper).
enum class RotaryPairs { halves, neighbours };

// How frequencies are changed for longer texts than those of the pretraining: not at all, all divided by a factor, or
// by the rule of Llama 3.1. That rule keeps wavelengths below original_positions / high_frequency_factor, divides the
// frequencies of wavelengths above original_positions / low_frequency_factor, and blends between the two.
enum class RotaryScaling { none, linear, llama3 };

struct RotaryAttributes {
  std::int64_t head_size = 0;  // values of a head
  std::int64_t width = 0;      // the first values of each head, which are rotated; even
  double base = 10'000;        // the frequency of pair i is base^(-2 i / width) radians for each position
  RotaryPairs pairs = RotaryPairs::halves;
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;
  double low_frequency_factor = 1, high_frequency_factor = 4;  // read by llama3 only, as the next one
  std::int64_t original_positions = 8192;
};

// y = x with each pair (a, b) of a head at position p replaced by (a cos - b sin, a sin + b cos) of the angle p *
// frequency; with `backwards` by the opposite angle, which is its gradient. The position is the index t; with document
// numbers it is the number of steps since the document number changed; with starts it is starts[n] + t. Inputs: x [N,
// T, heads * head_size], optionally document numbers int32 [N, T] or, if `positions` is not 0, starts int32 [N].
// Outputs: y, like x. In place.
struct Rotary final : OpDef {
  RotaryAttributes a;
  bool backwards = false;
  std::int64_t positions = 0;  // with starts: the number of positions; a later position counts as the last one

  explicit Rotary(const RotaryAttributes& attributes, bool back = false) : a(attributes), backwards(back) {}
  std::string_view kind() const override { return "rotary"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Returns the frequency of each pair, in radians for each position, after scaling.
std::vector<double> rotary_frequencies(const RotaryAttributes& a);

// Cosines and sines from which kernels compute those of any position below `positions`: position p is the sum of
// `high` position p / block * block and `low` position p % block. Both tables have (cos, sin) for each pair: low is
// [block][pairs][2], high is [(positions + block - 1) / block][pairs][2]. They have about 2 sqrt(positions) rows.
struct RotaryTables {
  std::int64_t block = 1, pairs = 0;
  std::vector<double> low, high;

  RotaryTables(const RotaryAttributes& a, std::int64_t positions);
};

}  // namespace trainctl
