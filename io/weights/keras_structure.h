// Which layer of a network each group of a file of Keras' is, if the file does not name its layers and only one can be.
#pragma once

#include <vector>

#include "core/layers/model/name_rules.h"
#include "io/weights/layout.h"
#include "io/weights/weights_file.h"

namespace trainctl {

// Whether a tensor's name is a path of groups that Keras before 3.6 counted by class: "layers/dense_1/0".
bool is_counted(const FileTensor& tensor);

// Rules from the network's layers to the groups: a group is the layer's whose kinds of weights and shapes it has. None
// unless every layer fits one group alone and every group one layer alone.
std::vector<NameRule> rules_by_structure(const std::vector<WantedTensor>& wanted,
                                         const std::vector<FileTensor>& stored);

}  // namespace trainctl
