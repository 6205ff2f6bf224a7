// Matches the groups of a Keras file without names of layers with the layers of a network, if only one assignment is
// possible.
#pragma once

#include <vector>

#include "core/layers/model/name_rules.h"
#include "io/weights/layout.h"
#include "io/weights/weights_file.h"

namespace trainctl {

// Whether a tensor's name is a path of groups that Keras versions before 3.6 numbered by class: "layers/dense_1/0".
bool is_counted(const FileTensor& tensor);

// Returns rules from the names of the network's layers to groups with the same kinds and shapes of weights. Empty
// unless each layer fits exactly one group and each group exactly one layer.
std::vector<NameRule> rules_by_structure(const std::vector<WantedTensor>& wanted,
                                         const std::vector<FileTensor>& stored);

}  // namespace trainctl
