// The `model` section: layers, or a preset that expands to layers, with the names of inputs and outputs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/layers/model/added_loss.h"
#include "core/layers/model/model.h"
#include "core/layers/model/reference.h"
#include "core/layers/model/weights_options.h"
#include "core/layers/table.h"

namespace trainctl {

// A preset is replaced by its layers (expand_preset, core/layers/model/preset.h) before the section is read.
struct ModelOptions {
  Reference preset;
  Node with;
  Reference until;  // empty once continue_network() has run (core/layers/model/included.h)
  Node replace;     // empty once replace_layers() has run (core/layers/model/included.h)
  LayerList layers;
  std::optional<WeightsOptions> weights;
  std::vector<Reference> inputs;  // names of the inputs; empty: one input, which the first layer reads
  std::vector<Reference> freeze;  // patterns of the names of layers and blocks that do not train
  // Names of layers; a name refers to the last use of the layer. Empty: the last layer is the only output.
  std::vector<Reference> outputs;
  std::map<std::string, AddedLoss> add_loss;  // by name

  static Keys<ModelOptions> keys();
};

}  // namespace trainctl
