// The `model` section: layers, or a preset that stands for layers.
#pragma once

#include "core/layers/model.h"
#include "core/layers/reference.h"
#include "core/layers/table.h"

namespace trainctl {

// A preset is replaced by its layers (expand_preset, core/layers/preset.h) before the section is read.
struct ModelOptions {
  Reference preset;
  Node with;
  LayerList layers;

  static Keys<ModelOptions> keys();
};

}  // namespace trainctl
