// Adds nodes for crops and resizes before the nodes of the network.
#include "io/onnx/image_steps.h"

#include <algorithm>
#include <string>

#include "core/base/format.h"

namespace trainctl {
namespace {

class StepNodes {
 public:
  StepNodes(OnnxModel& model, const OnnxValue& stored)
      : model_(model), value_(stored.name), dtype_(stored.type.dtype) {}

  void crop(const Borders& borders) {
    constexpr std::int64_t end = INT32_MAX;  // the end of a dimension from which no pixels are cut off
    const auto until = [](std::int64_t after) { return after > 0 ? -after : end; };
    append("Slice", {value_, integers("from", {borders.before[0], borders.before[1]}),
                     integers("to", {until(borders.after[0]), until(borders.after[1])}), integers("axes", {1, 2})});
  }

  // half_pixel and antialias select the filter of tf.image.resize and Pillow; with exclude_outside the weights at the
  // border sum to 1, as in both. Channels are moved to the front, since runtimes filter the last two dimensions.
  void resize(std::int64_t height, std::int64_t width) {
    if (dtype_ != DType::float32) append("Cast", {value_}, {{"to", 1}});
    dtype_ = DType::float32;
    append("Transpose", {value_}, {{"perm", std::vector<std::int64_t>{0, 3, 1, 2}}});
    const std::string image = value_;
    append("Shape", {image}, {{"start", 0}, {"end", 2}});
    append("Concat", {value_, integers("sizes", {height, width})}, {{"axis", 0}});
    append("Resize", {image, "", "", value_},
           {{"mode", "linear"},
            {"antialias", 1},
            {"exclude_outside", 1},
            {"coordinate_transformation_mode", "half_pixel"}});
    append("Transpose", {value_}, {{"perm", std::vector<std::int64_t>{0, 2, 3, 1}}});
  }

  const std::vector<OnnxNode>& nodes() const { return nodes_; }
  const std::string& value() const { return value_; }

 private:
  std::string unused(const std::string& name) { return format("preprocess/{}/{}", number_++, name); }

  void append(const std::string& type, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {}) {
    value_ = unused(type);
    nodes_.push_back({type, std::move(inputs), {value_}, std::move(attributes)});
  }

  std::string integers(const std::string& name, const std::vector<std::int64_t>& values) {
    std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int64_t));
    model_.constants.push_back({unused(name), {{std::ssize(values)}, DType::int64}, std::move(bytes)});
    return model_.constants.back().name;
  }

  OnnxModel& model_;
  std::vector<OnnxNode> nodes_;
  std::string value_;  // output of the last node
  DType dtype_;
  int number_ = 0;
};

}  // namespace

void prepend_image_steps(OnnxModel& model, const OnnxValue& stored, const std::vector<ImageStep>& steps) {
  StepNodes step_nodes(model, stored);
  for (const ImageStep& step : steps) {
    const auto& [before, after] = step.crop;
    if (before[0] + before[1] + after[0] + after[1] > 0) step_nodes.crop(step.crop);
    if (step.height > 0) step_nodes.resize(step.height, step.width);
  }
  for (OnnxNode& node : model.nodes) {
    std::replace(node.inputs.begin(), node.inputs.end(), model.inputs[0].name, step_nodes.value());
  }
  model.nodes.insert(model.nodes.begin(), step_nodes.nodes().begin(), step_nodes.nodes().end());
  model.inputs[0] = stored;
}

}  // namespace trainctl
