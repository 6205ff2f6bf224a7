// spectral_normalization: a layer whose kernel each training step divides by its spectral norm.
#include <algorithm>
#include <array>

#include "core/base/format.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

// Kinds of layers that have one kernel, or embeddings, in Keras' layout.
constexpr std::array wrapped_kinds{"dense",  "einsum_dense",     "embedding",        "conv1d",          "conv2d",
                                   "conv3d", "conv1d_transpose", "conv2d_transpose", "conv3d_transpose"};

struct SpectralNormalizationOptions final : ChainedLayer {
  LayerList layers;
  std::int64_t power_iterations = 1;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Feature y = layer.expand_part(layers[0].name, wrapped(), "layer", inputs, layer.model_output());
    if (!y.known()) return {};
    layer.normalize_kernel(y, static_cast<int>(power_iterations));
    return layer.output(y.tensor, y.mask);
  }
  const Choice* final_activation() const override { return wrapped().final_activation(); }
  std::int64_t tokens() const override { return wrapped().tokens(); }
  MaskUse mask_use() const override { return MaskUse::own; }

 private:
  const LayerOptions& wrapped() const { return layers[0].as<LayerOptions>(); }
};

void check_wrapped(const SpectralNormalizationOptions& options, const Node& node, Reader& reader) {
  const LayerList& layers = options.layers;
  const auto is_wrapped = [&](const char* kind) { return layers[0].name == kind; };
  if (layers.size() != 1 || (layers[0] && std::ranges::none_of(wrapped_kinds, is_wrapped))) {
    std::string kinds;
    for (const char* kind : wrapped_kinds) kinds += format("{}{}", kinds.empty() ? "" : ", ", kind);
    reader.error(node.find("layers")->location, format("layers must have one layer, of one of the kinds {}", kinds));
  } else if (layers[0] &&
             (layers[0].as<LayerOptions>().name.given || !layers[0].as<LayerOptions>().references().empty())) {
    reader.error(layers[0].location,
                 "the inner layer has no `name` and no `from`: give them to spectral_normalization");
  }
}

}  // namespace

Section spectral_normalization() {
  using O = SpectralNormalizationOptions;
  return layer_keys<O>("spectral_normalization",
                       "A layer whose kernel each training step divides by an estimate of its largest singular value "
                       "before the step's first forward pass (Miyato et al., 2018). As in Keras with TensorFlow, the "
                       "quotient becomes the kernel, which the optimizer then changes, and evaluation and prediction "
                       "use the kernel as it is. Frozen kernels do not change. The weights are layer/... and vector_u.")
      .required("layers", &O::layers, "The layer, in a list.")
      .key("power_iterations", &O::power_iterations, "Number of iterations of the estimate in each step.",
           between(1, 1000))
      .check(check_wrapped);
}

}  // namespace trainctl
