// The `model` section, and the graph of a model.
#include "core/layers/model.h"

#include "core/layers/activations.h"
#include "core/layers/expansion.h"
#include "core/layers/model_options.h"

namespace trainctl {

Keys<ModelOptions> ModelOptions::keys() {
  return Keys<ModelOptions>("model", "The network: a preset, or a list of layers.")
      .key("preset", &ModelOptions::preset, "A network of configs/models by name, or a path to a file of that form.")
      .key("with", &ModelOptions::with, "The preset's parameters by name; absent: its defaults.")
      .key("layers", &ModelOptions::layers, "The layers in order; each takes the output of the one before.")
      .check([](const ModelOptions& model, const Node& node, Reader& reader) {
        if (!model.layers.empty() || !model.preset.name.empty()) return;
        reader.error(node.place, "model needs layers or a preset");
      });
}

BuiltModel build_model(const ModelOptions& model, const BuildOptions& options, Reader& reader) {
  require(!model.layers.empty(), "a model was built before its preset was replaced by layers");
  Expansion expansion(options, reader);
  const std::size_t before = reader.diagnostics().size();
  const Feature output = expansion.expand(model.layers, expansion.input(), "", true, "input");
  expansion.graph.output = output.tensor;
  if (reader.diagnostics().size() == before) expansion.check_all_used();
  if (reader.diagnostics().size() == before && expansion.graph.parameters.empty()) {
    reader.error(model.layers[0].place, "the network has no parameters: there is nothing to train");
  }
  return {std::move(expansion.graph), std::move(expansion.lines)};
}

FinalActivation final_activation(const ModelOptions& model) {
  if (model.layers.empty()) return FinalActivation::none;
  const Choice* activation = model.layers.back().as<LayerOptions>().final_activation();
  return activation ? final_activation_of(*activation) : FinalActivation::none;
}

}  // namespace trainctl
