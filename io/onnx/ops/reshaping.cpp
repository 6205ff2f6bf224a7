// Translates ops that rearrange values without computing, and constants.
#include <limits>
#include <numeric>

#include "core/graph/ops/arange.h"
#include "core/graph/ops/reshaping/flip.h"
#include "core/graph/ops/reshaping/permute.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {

void reshape(const OnnxOp& op) {
  op.set_output(op.node("Reshape", {op.value(0), op.integers(open_batch(op.output_type().shape))}));
}

void permute(const OnnxOp& op) {
  op.set_output(op.node("Transpose", {op.value(0)}, {{"perm", op.as<Permute>().order}}));
}

void concatenate(const OnnxOp& op) {
  const Channels channels = op.channels();
  std::vector<std::string> operands;
  for (std::size_t i = 0; i < op.inputs(); ++i) operands.push_back(op.value(i, channels));
  op.set_output(op.node("Concat", operands, {{"axis", channels == Channels::first ? 1 : -1}}), channels);
}

void flip(const OnnxOp& op) {
  constexpr std::int64_t before_first = std::numeric_limits<std::int64_t>::min();
  op.set_output(op.node("Slice", {op.value(0), op.integers({-1}), op.integers({before_first}),
                                  op.integers({op.as<Flip>().axis}), op.integers({-1})}));
}

void arange(const OnnxOp& op) {
  std::vector<float> values(static_cast<std::size_t>(op.as<Arange>().count));
  std::iota(values.begin(), values.end(), 0.0f);
  op.set_output(op.numbers(op.output_type().shape, values));
}

// A cast is dropped, since all values are float32.
void cast(const OnnxOp& op) {
  const Channels channels = op.channels();
  op.set_output(op.value(0, channels), channels);
}

}  // namespace trainctl::onnx
