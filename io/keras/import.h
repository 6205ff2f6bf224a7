// A network that Keras saved, as a config and weights of trainctl.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"
#include "io/weights/load.h"

namespace trainctl {

struct ImportedNetwork {
  std::string config;  // YAML: the section `model`, and of `train` what the network was compiled with
  LoadedWeights weights;
  std::size_t layers = 0;
  std::int64_t parameters = 0;     // without running statistics
  std::vector<std::string> notes;  // sentences on what the user should know, which stand in the config, too
};

// Reads a .keras file or a whole-model .h5 file and gives the network in trainctl's terms, with the same outputs; the
// config takes its weights from the file `weights_file`. `open_shapes`: of samples, for those inputs that leave
// dimensions open (None), in their order; inputs that it lacks are checked with 256 in these. Throws ConfigError with
// all layers and options that have no counterpart, and Error{data} where the file cannot be read.
ImportedNetwork import_keras(const std::string& path, const std::string& weights_file,
                             const std::vector<Shape>& open_shapes = {});

}  // namespace trainctl
