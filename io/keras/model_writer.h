// A network of Keras' as the section `model` of a config.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/document.h"
#include "io/keras/layers.h"
#include "io/keras/network.h"

namespace trainctl {

// Where a layer of the config comes from: a use of a layer of Keras', and the axes that must be the config's last one.
struct WrittenLayer {
  std::size_t use = 0;
  std::vector<std::int64_t> axes;
};

struct WrittenModel {
  Node model;                        // a map, without `weights` and `freeze`
  std::vector<WrittenLayer> layers;  // one for each of the config's
};

// `translations`, one for each use, are without errors; those of inputs are not looked at.
WrittenModel write_model(const KerasNetwork& network, const std::vector<Translation>& translations);

}  // namespace trainctl
