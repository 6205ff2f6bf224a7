// Finds the names of the tensors in a file of weights that Keras wrote, which include their layers.
#pragma once

#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "io/weights/hdf5_file.h"

namespace trainctl {

// The possible names of each data set of the file, in the order of data sets: the layer's path, and the weight's name
// or its number among the layer's weights, as "outer/dense/kernel" or "outer/dense/0". A data set without a name
// belongs to an optimizer or a metric.
//
// `network` is the network that was saved, or null if the file holds only weights. If the file does not name its
// layers, groups are assigned to layers by the order of layers in the network; without a network the groups' paths are
// the names: "layers/dense_1/0". Throws Error{data} if the groups do not match the network, and Json::exception if the
// network is not as Keras writes it. `shown` is the file's name in messages.
using KerasNames = std::vector<std::vector<std::string>>;
KerasNames keras_names(const Hdf5File& file, const Json& network, const std::string& shown);

// The implementations for two file layouts: groups of numbered variables, in .keras and .weights.h5 files of Keras 2.12
// and later; and groups with the names of layers that list the names of their weights, in .h5 files.
KerasNames names_of_variables(const Hdf5File& file, const Json& network, const std::string& shown);
KerasNames names_of_layers(const Hdf5File& file, const Json& network, const std::string& shown);

}  // namespace trainctl
