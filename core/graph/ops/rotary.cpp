// Shapes, placements, gradient and angles of rotary position embedding.
#include "core/graph/ops/rotary.h"

#include <cmath>
#include <numbers>

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

// The frequency after Llama 3.1's scaling.
double llama3_frequency(const RotaryAttributes& a, double frequency) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const double turns = static_cast<double>(a.original_positions) / wavelength;  // within the original positions
  if (turns > a.high_frequency_factor) return frequency;
  if (turns < a.low_frequency_factor) return frequency / a.factor;
  const double kept = (turns - a.low_frequency_factor) / (a.high_frequency_factor - a.low_frequency_factor);
  return (1 - kept) * frequency / a.factor + kept * frequency;
}

// Appends the cosine and sine of each frequency at a position.
void append_angles(const std::vector<double>& frequencies, std::int64_t position, std::vector<double>& table) {
  for (const double frequency : frequencies) {
    const double angle = static_cast<double>(position) * frequency;
    table.push_back(std::cos(angle));
    table.push_back(std::sin(angle));
  }
}

}  // namespace

std::vector<double> rotary_frequencies(const RotaryAttributes& a) {
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < a.width / 2; ++i) {
    const double frequency = std::pow(a.base, -2.0 * static_cast<double>(i) / static_cast<double>(a.width));
    switch (a.scaling) {
      case RotaryScaling::none:
        frequencies.push_back(frequency);
        break;
      case RotaryScaling::linear:
        frequencies.push_back(frequency / a.factor);
        break;
      case RotaryScaling::llama3:
        frequencies.push_back(llama3_frequency(a, frequency));
        break;
    }
  }
  return frequencies;
}

RotaryTables::RotaryTables(const RotaryAttributes& a, std::int64_t positions) : pairs(a.width / 2) {
  while (block * block < positions) block *= 2;
  const std::vector<double> frequencies = rotary_frequencies(a);
  for (std::int64_t p = 0; p < block; ++p) append_angles(frequencies, p, low);
  for (std::int64_t p = 0; p < positions; p += block) append_angles(frequencies, p, high);
}

std::string Rotary::attributes() const {
  AttributeText text;
  text.value("head_size", a.head_size).value("width", a.width).value("base", a.base);
  text.flag("neighbours", a.pairs == RotaryPairs::neighbours);
  if (a.scaling != RotaryScaling::none) text.value("factor", a.factor);
  if (a.scaling == RotaryScaling::llama3) {
    text.value("low_frequency_factor", a.low_frequency_factor);
    text.value("high_frequency_factor", a.high_frequency_factor);
    text.value("original_positions", a.original_positions);
  }
  if (positions != 0) text.value("positions", positions);
  return text.flag("backwards", backwards).text();
}

std::vector<TensorType> Rotary::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(x.rank() == 3 && x.back() % a.head_size == 0, "rotary: x is not [N, T, heads * head_size]");
  require(a.width > 0 && a.width % 2 == 0 && a.width <= a.head_size, "rotary: the width is odd or exceeds a head");
  const Shape second = positions != 0 ? Shape{x[0]} : Shape{x[0], x[1]};
  require(positions != 0 ? inputs.size() == 2 : inputs.size() <= 2, "rotary: the inputs do not fit the attributes");
  require(inputs.size() == 1 || inputs[1] == TensorType{second, DType::int32},
          "rotary: the second input is neither document numbers int32 [N, T] nor starts int32 [N]");
  return {inputs[0]};
}

// The last dimension can be split into whole heads.
OutputPlacements Rotary::placements(const PlacementQuery& query) const {
  const bool whole_heads = query.input_types[0].shape.back() % a.head_size == 0;
  const std::string x = whole_heads ? "a.c+S" : "a..+S";
  PlacementRule rule{{x, positions != 0 ? "a" : "a."}, {x}};
  rule.inputs.resize(query.inputs.size());
  return place_by(rule, query);
}

double Rotary::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  const auto values = static_cast<double>(inputs[0].shape.count() / a.head_size * a.width);
  return 3 * values;
}

void Rotary::differentiate(const Op& op, Differentiator& differentiator) const {
  require(positions == 0, "rotary: with starts it has no gradient");
  std::vector<TensorId> inputs = op.inputs;
  inputs[0] = differentiator.gradient_of(op.outputs[0]);
  const auto gradient = differentiator.emit(std::make_shared<Rotary>(a, !backwards), std::move(inputs), op);
  differentiator.contribute(op.inputs[0], gradient[0]);
}

}  // namespace trainctl
