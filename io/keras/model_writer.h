// Writes a Keras network as the section `model` of a config.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/document.h"
#include "io/keras/layers.h"
#include "io/keras/network.h"

namespace trainctl {

// The origin of a layer of the config: a use of a Keras layer, and the axes that must be the last axis.
struct WrittenLayer {
  std::size_t use = 0;
  std::vector<std::int64_t> axes;
};

struct WrittenModel {
  Node model;                        // a map, without `weights` and `freeze`
  std::vector<WrittenLayer> layers;  // one item for each layer of the config
};

// `translations` has one item for each use, all without errors; items of inputs are ignored.
WrittenModel write_model(const KerasNetwork& network, const std::vector<Translation>& translations);

}  // namespace trainctl
