// Which tensor of a file each tensor of a network takes, by name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/weights/layout.h"
#include "io/weights/weights_file.h"

namespace trainctl {

class Reader;
struct WeightsOptions;

// The fate of every tensor of the network and of the file.
struct WeightsMatch {
  struct Pair {
    std::size_t wanted = 0;           // the number of the network's tensor in the list that was matched
    std::vector<std::size_t> stored;  // the number of the file's, or of two, whose sum it is
  };
  std::string names;  // whose: "torchvision's names"
  WeightsLayout layout = WeightsLayout::trainctl;
  std::vector<Pair> loaded;
  std::vector<std::string> skipped;  // of the network, then of the file
  std::vector<std::string> missing;  // of the network; they keep their initial values
};

// Matches by the names of trainctl, of the programs in `options.names`, or of layers that are called as in the network:
// those that find most tensors. Everything that is wrong goes to the reader: shapes that differ, tensors of the network
// that the file lacks unless they may be missing, tensors of the file that none takes unless they are skipped, and
// patterns that skip nothing.
WeightsMatch match_weights(const std::vector<WantedTensor>& wanted, const WeightsFile& file,
                           const WeightsOptions& options, Reader& reader);

}  // namespace trainctl
