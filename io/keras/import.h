// Imports a network that Keras saved as a config and weights of trainctl.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"
#include "io/weights/load.h"

namespace trainctl {

struct ImportedNetwork {
  std::string config;  // YAML: the section `model`, and in `train` the settings that the network was compiled with
  LoadedWeights weights;
  std::size_t layers = 0;
  std::int64_t parameters = 0;     // number of parameters without running statistics
  std::vector<std::string> notes;  // sentences for the user, which are also comments in the config
};

// Reads a .keras file or a whole-model .h5 file and returns a network of trainctl with the same outputs. The config
// names `weights_file` as the file of its weights. `open_shapes` are the shapes of samples for the inputs that leave
// dimensions open (None), in order; in further inputs, each open dimension becomes 256. Throws ConfigError with all
// layers and options that have no counterpart, and Error{data} if the file cannot be read.
ImportedNetwork import_keras(const std::string& path, const std::string& weights_file,
                             const std::vector<Shape>& open_shapes = {});

}  // namespace trainctl
