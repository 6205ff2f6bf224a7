// Translates pooling over windows and over whole images.
#include "core/graph/ops/images/pool2d.h"

#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

// Adds an operator that reduces all positions of an image, for each channel.
void reduced(const OnnxOp& op, const std::string& type) {
  const Channels channels = op.channels();
  const std::int64_t height = channels == Channels::first ? 2 : 1;
  op.set_output(op.node(type, {op.value(0, channels), op.integers({height, height + 1})}, {{"keepdims", 0}}));
}

}  // namespace

void pool2d(const OnnxOp& op) {
  const auto& pool = op.as<Pool2d>();
  const Window& window = pool.window;
  const bool largest = pool.mode == PoolMode::max;
  std::vector<OnnxAttribute> attributes{
      {"kernel_shape", std::vector<std::int64_t>{window.size[0], window.size[1]}},
      {"strides", std::vector<std::int64_t>{window.strides[0], window.strides[1]}},
      {"pads", std::vector<std::int64_t>{window.padding_before[0], window.padding_before[1], window.padding_after[0],
                                         window.padding_after[1]}}};
  if (!largest) attributes.push_back({"count_include_pad", 0});
  op.set_output(op.node(largest ? "MaxPool" : "AveragePool", {op.value(0, Channels::first)}, attributes),
                Channels::first);
}

void global_average_pool2d(const OnnxOp& op) { reduced(op, "ReduceMean"); }

void global_max_pool2d(const OnnxOp& op) { reduced(op, "ReduceMax"); }

}  // namespace trainctl::onnx
