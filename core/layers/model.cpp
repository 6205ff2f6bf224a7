// The `model` section, and the graph of a model.
#include "core/layers/model.h"

#include <algorithm>
#include <optional>

#include "core/base/format.h"
#include "core/layers/activations.h"
#include "core/layers/expansion.h"
#include "core/layers/model_options.h"

namespace trainctl {

Keys<ModelOptions> ModelOptions::keys() {
  return Keys<ModelOptions>("model", "The network: a preset, or a list of layers.")
      .key("preset", &ModelOptions::preset, "A network of configs/models by name, or a path to a file of that form.")
      .key("with", &ModelOptions::with, "The preset's parameters by name; absent: its defaults.")
      .key("layers", &ModelOptions::layers,
           "The layers in order; each takes the output of the one before. At most 5000, "
           "those of a repeat counted each time.")
      .exclusive({"preset", "layers"})
      .one_of({"layers", "preset"}, "the network");
}

BuiltModel build_model(const ModelOptions& model, const BuildOptions& options, Reader& reader) {
  require(!model.layers.empty(), "a model was built before its preset was replaced by layers");
  std::optional<Expansion> expansion;
  try {
    expansion.emplace(options, reader);
  } catch (const OverflowError&) {
    reader.error(model.layers[0].place, format("a batch of {} samples of {} is larger than any memory", options.batch,
                                               to_string(options.sample)));
    return {};
  }
  const std::size_t before = reader.count();
  const Feature output = expansion->expand(model.layers, expansion->input(), "", true, "input");
  expansion->graph.output = output.tensor;
  if (reader.count() == before) expansion->check_all_used();
  if (reader.count() == before && expansion->graph.parameters.empty()) {
    reader.error(model.layers[0].place, "the network has no parameters: there is nothing to train");
  }
  return {std::move(expansion->graph), std::move(expansion->lines)};
}

std::int64_t token_count(const ModelOptions& model) {
  std::int64_t least = 0;
  for (const Choice& layer : model.layers) {
    const std::int64_t tokens = layer ? layer.as<LayerOptions>().tokens() : 0;
    if (tokens > 0) least = least == 0 ? tokens : std::min(least, tokens);
  }
  return least;
}

FinalActivation final_activation(const ModelOptions& model) {
  if (model.layers.empty()) return FinalActivation::none;
  const Choice* activation = model.layers.back().as<LayerOptions>().final_activation();
  return activation ? final_activation_of(*activation) : FinalActivation::none;
}

}  // namespace trainctl
