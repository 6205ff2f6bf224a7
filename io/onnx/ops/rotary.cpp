// Translates rotary position embedding: the cosines and sines of all positions are constants.
#include "core/graph/ops/rotary.h"

#include <cmath>

#include "core/base/error.h"
#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

// The values [begin, end) of x along dimension `axis`.
std::string slice(const OnnxOp& op, const std::string& x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  return op.node("Slice", {x, op.integers({begin}), op.integers({end}), op.integers({axis})});
}

struct Angles {
  std::string cosines, sines;  // constants [steps, 1, pairs] or, for neighbouring pairs, [steps, 1, pairs, 1]
};

Angles angles_of(const OnnxOp& op, const Rotary& rotary, std::int64_t steps) {
  const std::vector<double> frequencies = rotary_frequencies(rotary.a);
  std::vector<float> cosines, sines;
  for (std::int64_t t = 0; t < steps; ++t) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(t) * frequency * (rotary.backwards ? -1 : 1);
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  Shape shape{steps, 1, std::ssize(frequencies)};
  if (rotary.a.pairs == RotaryPairs::neighbours) shape = shape.with_appended(1);
  return {op.numbers(shape, cosines), op.numbers(shape, sines)};
}

// Rotates pairs whose first values are `a` and whose second values are `b`, and joins them along dimension `axis`.
std::string rotated(const OnnxOp& op, const Angles& angles, const std::string& a, const std::string& b,
                    std::int64_t axis) {
  const auto product = [&](const std::string& x, const std::string& factors) { return op.node("Mul", {x, factors}); };
  const std::string first = op.node("Sub", {product(a, angles.cosines), product(b, angles.sines)});
  const std::string second = op.node("Add", {product(a, angles.sines), product(b, angles.cosines)});
  return op.node("Concat", {first, second}, {{"axis", axis}});
}

}  // namespace

void rotary(const OnnxOp& op) {
  const auto& def = op.as<Rotary>();
  if (op.inputs() > 1) {
    throw Error(ErrorKind::config, op.name("rotary") + ": rotary positions of documents in one row cannot be exported");
  }
  const Shape& shape = op.input_type(0).shape;
  const std::int64_t steps = shape[1], heads = shape[2] / def.a.head_size, width = def.a.width;
  const auto reshaped = [&](const std::string& x, std::vector<std::int64_t> sizes) {
    sizes.insert(sizes.begin(), {-1, steps, heads});
    return op.node("Reshape", {x, op.integers(sizes)});
  };
  const Angles angles = angles_of(op, def, steps);
  const std::string x = reshaped(op.value(0), {def.a.head_size});
  std::string y = width < def.a.head_size ? slice(op, x, 3, 0, width) : x;
  if (def.a.pairs == RotaryPairs::neighbours) {
    y = reshaped(y, {width / 2, 2});
    y = reshaped(rotated(op, angles, slice(op, y, 4, 0, 1), slice(op, y, 4, 1, 2), 4), {width});
  } else {
    y = rotated(op, angles, slice(op, y, 3, 0, width / 2), slice(op, y, 3, width / 2, width), 3);
  }
  if (width < def.a.head_size) {
    y = op.node("Concat", {y, slice(op, x, 3, width, def.a.head_size)}, {{"axis", 3}});
  }
  op.set_output(op.node("Reshape", {y, op.integers(open_batch(shape))}));
}

}  // namespace trainctl::onnx
