// Keras' layers as layers of a config.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"
#include "io/keras/network.h"

namespace trainctl {

// A layer of the config: its kind, and its options without name and `from`.
struct TranslatedLayer {
  std::string kind;
  Node options;
};

// What a layer of Keras' is here.
struct Translation {
  std::vector<TranslatedLayer> layers;  // one behind the other: a second one where a shape must be mended
  // The axes of which Keras' layer has one of several: it must be the last, which the shapes tell; -1 where it is.
  std::vector<std::int64_t> axes;
  bool trainable = true;
};

// Translates a layer, not an input. Everything that has no counterpart is reported with the layer's class and name; the
// result is then of no use. `keras_version` is the one that wrote the file, "" where it is unknown. Throws
// Json::exception where the layer is not as Keras writes it.
Translation translate(const LayerUse& use, const std::string& keras_version, const std::string& path, Reader& reader);

}  // namespace trainctl
