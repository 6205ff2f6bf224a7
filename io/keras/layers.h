// Translates Keras' layers to layers of a config.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"
#include "io/keras/network.h"

namespace trainctl {

// A layer of the config: its kind, and its options without `name` and `from`.
struct TranslatedLayer {
  std::string kind;
  Node options;
};

// The layers of a config that replace a Keras layer.
struct Translation {
  std::vector<TranslatedLayer> layers;  // in a chain; a second layer changes the shape if necessary
  // The `axis` of Keras layers that have one. trainctl supports the last axis only; it is checked once the shapes are
  // known. -1 is the last axis.
  std::vector<std::int64_t> axes;
  bool trainable = true;
  std::string half_precision;  // the layer's dtype in Keras if it has fewer bits than float32: "mixed_float16"
};

// Translates a layer that is not an input. Everything without a counterpart is reported with the layer's class and
// name; the result must not be used then. `keras_version` is the version that wrote the file, "" if it is unknown.
// Throws Json::exception if the layer is not as Keras writes it.
Translation translate(const LayerUse& use, const std::string& keras_version, const std::string& path, Reader& reader);

}  // namespace trainctl
