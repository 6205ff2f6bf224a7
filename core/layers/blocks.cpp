// The layers residual and repeat.
#include "core/layers/blocks.h"

#include "core/base/format.h"

namespace trainctl {
namespace {

template <class T>
void check_layers(const T& options, const Node& node, Reader& reader) {
  if (options.layers.empty()) reader.error(node.find("layers")->location, "layers is empty");
}

}  // namespace

Keys<ResidualOptions> ResidualOptions::keys() {
  using O = ResidualOptions;
  return layer_keys<O>("residual", "activation(layers(x) + shortcut(x)).")
      .required("layers", &O::layers, "The layers of the branch.")
      .key("shortcut", &O::shortcut, "identity, or the layers of the shortcut.")
      .key("activation", &O::activation, "Activation of the sum.")
      .check(check_layers<O>);
}

Feature ResidualOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  layer.add_block(layer.path());
  const Feature branch = layer.expand(layers, inputs[0], layer.path(), no_output, {"shortcut"});
  const auto* around = std::get_if<LayerList>(&shortcut);
  const Feature direct = around ? layer.expand(*around, inputs[0], layer.path() + "/shortcut") : inputs[0];
  if (!branch.known() || !direct.known()) return {};
  const Shape left = layer.shape(branch), right = layer.shape(direct);
  if (left != right) {
    return layer.error(format("the layers produce {} and the shortcut produces {}, which cannot be added",
                              to_string(left), to_string(right)),
                       branch);
  }
  const TensorId sum = layer.op(std::make_shared<Add>(), {branch.tensor, direct.tensor})[0];
  const TensorId y = layer.activate(sum, activation);
  return layer.output(y, layer.merged_mask({branch, direct}));
}

Keys<RepeatOptions> RepeatOptions::keys() {
  using O = RepeatOptions;
  return layer_keys<O>("repeat",
                       "The same layers several times in a row, with separate parameters for each repetition.")
      .required("times", &O::times, "Number of repetitions.", between(1, 10000))
      .required("layers", &O::layers, "The layers that are repeated.")
      .check(check_layers<O>);
}

Feature RepeatOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  Feature x = inputs[0];
  for (std::int64_t i = 0; i < times && x.known(); ++i) {
    const int output = i + 1 == times ? layer.model_output() : no_output;
    const std::string body = format("{}/{}", layer.path(), i);
    layer.add_block(body);
    x = layer.expand(layers, x, body, output);
  }
  return x;
}

const Choice* RepeatOptions::final_activation() const {
  return layers.empty() ? nullptr : layers.back().as<LayerOptions>().final_activation();
}

}  // namespace trainctl
