// The layers add and concatenate.
#include "core/layers/merging/merging.h"

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/reshaping/shaping.h"

namespace trainctl {

void check_several(const MergingLayer& options, const Node& node, Reader& reader) {
  if (options.from.size() >= 2) return;
  reader.error(node.find("from")->location,
               format("from names {}, but at least two are needed", counted(options.from.size(), "layer")));
}

Keys<AddOptions> AddOptions::keys() {
  return layer_keys<AddOptions>("add", "The sum of several layers' outputs.").check(check_several);
}

Feature AddOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  const Shape first = layer.shape(inputs[0]);
  TensorId sum = inputs[0].tensor;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Shape next = layer.shape(inputs[i]);
    if (next != first) {
      return layer.error(format("{} of '{}' and {} of '{}' cannot be added", to_string(first), inputs[0].layer,
                                to_string(next), inputs[i].layer),
                         inputs[i]);
    }
    sum = layer.op(std::make_shared<Add>(), {sum, inputs[i].tensor})[0];
  }
  return layer.output(sum);
}

Keys<ConcatenateOptions> ConcatenateOptions::keys() {
  return layer_keys<ConcatenateOptions>("concatenate", "Several layers' outputs, joined along the last dimension.")
      .check(check_several);
}

Feature ConcatenateOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  const Shape first = layer.shape(inputs[0]);
  std::vector<TensorId> tensors;
  for (const Feature& input : inputs) {
    const Shape next = layer.shape(input);
    const auto outer = [](const Shape& shape) {
      return std::vector<std::int64_t>(shape.sizes().begin(), shape.sizes().end() - 1);
    };
    if (outer(next) != outer(first)) {
      return layer.error(format("{} of '{}' and {} of '{}' differ in more than the last dimension", to_string(first),
                                inputs[0].layer, to_string(next), input.layer),
                         input);
    }
    tensors.push_back(input.tensor);
  }
  return layer.output(layer.op(std::make_shared<Concatenate>(), tensors)[0]);
}

}  // namespace trainctl
