// Layers that contain layers: residual and repeat. The inner layers have paths such as `residual/conv2d`,
// `residual/shortcut/conv2d` and `repeat/0/conv2d`.
#include <variant>

#include "core/base/format.h"
#include "core/layers/activations.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {

enum class ShortcutMode { identity };

template <>
struct EnumNames<ShortcutMode> {
  static constexpr EnumName<ShortcutMode> names[] = {{ShortcutMode::identity, "identity"}};
};

namespace {

struct ResidualOptions final : ChainedLayer {
  LayerList layers;
  std::variant<ShortcutMode, LayerList> shortcut = ShortcutMode::identity;
  ActivationChoice activation{"linear"};

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
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
  MaskUse mask_use() const override { return MaskUse::own; }
  const Choice* final_activation() const override { return &activation; }
};

struct RepeatOptions final : ChainedLayer {
  std::int64_t times = 1;
  LayerList layers;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    Feature x = inputs[0];
    for (std::int64_t i = 0; i < times && x.known(); ++i) {
      const int output = i + 1 == times ? layer.model_output() : no_output;
      const std::string body = format("{}/{}", layer.path(), i);
      layer.add_block(body);
      x = layer.expand(layers, x, body, output);
    }
    return x;
  }
  MaskUse mask_use() const override { return MaskUse::own; }
  const Choice* final_activation() const override {
    return layers.empty() ? nullptr : layers.back().as<LayerOptions>().final_activation();
  }
};

template <class T>
void check_layers(const T& options, const Node& node, Reader& reader) {
  if (options.layers.empty()) reader.error(node.find("layers")->location, "layers is empty");
}

}  // namespace

Section residual() {
  using O = ResidualOptions;
  return layer_keys<O>("residual", "activation(layers(x) + shortcut(x)).")
      .required("layers", &O::layers, "The layers of the branch.")
      .key("shortcut", &O::shortcut, "identity, or the layers of the shortcut.")
      .key("activation", &O::activation, "Activation of the sum.")
      .check(check_layers<O>);
}

Section repeat() {
  using O = RepeatOptions;
  return layer_keys<O>("repeat",
                       "The same layers several times in a row, with separate parameters for each repetition.")
      .required("times", &O::times, "Number of repetitions.", between(1, 10000))
      .required("layers", &O::layers, "The layers that are repeated.")
      .check(check_layers<O>);
}

}  // namespace trainctl
