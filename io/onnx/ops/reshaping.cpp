// Translates ops that rearrange values without computing.
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

// A cast is dropped, since all values are float32.
void cast(const OnnxOp& op) {
  const Channels channels = op.channels();
  op.set_output(op.value(0, channels), channels);
}

}  // namespace trainctl::onnx
