// Builds a network of one layer and a head, for tests of the layer's shapes, ops, parameters and errors.
#pragma once

#include <string>
#include <vector>

#include "test/core/layers/build.h"

namespace trainctl::testing::one_layer {

using Lines = std::vector<std::string>;

// A model without parameters is refused, so that a dense layer follows.
inline std::string network(const std::string& layer) { return "layers:\n  - " + layer + "\n  - flatten\n  - dense: 1"; }

inline LayerLine line(const std::string& layer, Shape sample) {
  return build(network(layer), std::move(sample)).layers[0];
}

inline Shape output(const std::string& layer, Shape sample) { return line(layer, std::move(sample)).output; }

// Returns "kind attributes" for each op of the layer.
inline Lines ops(const std::string& layer, Shape sample, bool training = true) {
  const BuiltModel model = build(network(layer), std::move(sample), training);
  Lines lines;
  for (int i = 0; i < model.layers[0].ops; ++i) {
    const OpDef& def = *model.graph.ops[static_cast<std::size_t>(i)].def;
    lines.push_back(std::string(def.kind()) + (def.attributes().empty() ? "" : " ") + def.attributes());
  }
  return lines;
}

// Returns "name shape" for each parameter of the layer.
inline Lines parameters_of(const std::string& layer, Shape sample) {
  const BuiltModel model = build(network(layer), std::move(sample));
  Lines lines;
  for (std::size_t i = 0; i + 2 < model.graph.parameters.size(); ++i) {
    const Tensor& tensor = model.graph.tensor(model.graph.parameters[i].tensor);
    lines.push_back(tensor.name + " " + to_string(tensor.type.shape));
  }
  return lines;
}

inline std::string error(const std::string& layer, Shape sample) { return errors(network(layer), std::move(sample)); }

}  // namespace trainctl::testing::one_layer
