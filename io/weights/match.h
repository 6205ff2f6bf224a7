// Matches the tensors of a network with the tensors of a file by name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/weights/layout.h"
#include "io/weights/load.h"
#include "io/weights/weights_file.h"

namespace trainctl {

class Reader;
struct WeightsOptions;

// The tensors that are loaded, skipped and missing.
struct WeightsMatch {
  struct Pair {
    std::size_t wanted = 0;           // index of the network's tensor in the matched list
    std::vector<std::size_t> stored;  // index of the file's tensor, or of two tensors whose sum is loaded
    StoredPart part = {};             // the part of the file's tensor that is loaded
  };
  std::string names;  // the naming convention: "torchvision's names"
  WeightsLayout layout = WeightsLayout::trainctl;
  std::vector<Pair> loaded;
  std::vector<std::string> skipped;  // tensors of the network, then of the file
  std::vector<std::string> missing;  // tensors of the network, which keep their initial values
};

// Uses the naming convention that finds the most tensors: trainctl's names, those of the programs in `options.names`,
// or the network's own names of layers. Reports different shapes and patterns that skip no tensor to the reader. Also
// reports tensors of the network that are missing in the file, unless they may be missing, and tensors of the file that
// are not used, unless they are skipped.
WeightsMatch match_weights(const std::vector<WantedTensor>& wanted, const WeightsFile& file,
                           const WeightsOptions& options, Reader& reader, WeightsUse use = WeightsUse::config);

}  // namespace trainctl
