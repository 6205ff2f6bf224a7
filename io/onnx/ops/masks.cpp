// Translates padding masks, which are tensors of uint8 in the exported network, too.
#include "core/graph/ops/masks.h"

#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

constexpr std::int64_t onnx_float = 1, onnx_uint8 = 2, onnx_bool = 9;  // TensorProto.DataType

std::string cast(const OnnxOp& op, const std::string& x, std::int64_t type) {
  return op.node("Cast", {x}, {{"to", type}});
}

// The mask of positions [batch, P...] as numbers or conditions of another type, [batch, P..., 1].
std::string of_channels(const OnnxOp& op, std::size_t input, std::int64_t type) {
  return op.node("Unsqueeze", {cast(op, op.value(input), type), op.integers({-1})});
}

}  // namespace

void position_mask(const OnnxOp& op) {
  const bool tokens = op.input_type(0).dtype == DType::int32;
  const std::string values = tokens ? cast(op, op.value(0), onnx_float) : op.value(0);
  const std::string padding = op.node("Equal", {values, op.number(op.as<PositionMask>().padding)});
  std::string shown = cast(op, op.node("Not", {padding}), onnx_float);
  if (!tokens) shown = op.node("ReduceMax", {shown, op.integers({-1})}, {{"keepdims", 0}});
  op.set_output(cast(op, shown, onnx_uint8));
}

void merge_masks(const OnnxOp& op) {
  const char* kind = op.as<MergeMasks>().all ? "And" : "Or";
  const std::string merged = op.node(kind, {cast(op, op.value(0), onnx_bool), cast(op, op.value(1), onnx_bool)});
  op.set_output(cast(op, merged, onnx_uint8));
}

void mask_positions(const OnnxOp& op) {
  op.set_output(op.node("Where", {of_channels(op, 1, onnx_bool), op.value(0), op.number(0)}));
}

void masked_mean(const OnnxOp& op) {
  const std::string mask = of_channels(op, 1, onnx_float), axes = op.integers({1});
  const std::string sum = op.node("ReduceSum", {op.node("Mul", {op.value(0), mask}), axes}, {{"keepdims", 0}});
  const std::string count = op.node("ReduceSum", {mask, axes}, {{"keepdims", 0}});
  op.set_output(op.node("Div", {sum, op.node("Max", {count, op.number(1)})}));
}

}  // namespace trainctl::onnx
