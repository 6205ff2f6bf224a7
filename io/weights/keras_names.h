// The names of the tensors in a file of weights that Keras wrote: which layer each of them belongs to.
#pragma once

#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "io/weights/hdf5_file.h"

namespace trainctl {

// The names by which each data set of the file may be called, in their order: the layer's path and the weight's name or
// its number among those of the layer, as "outer/dense/kernel" or "outer/dense/0". A data set without a name is no
// weight of a layer, but an optimizer's or a metric's.
//
// `network` is the network that was saved, or null if the file holds weights alone. If the file itself does not name
// its layers, their order in the network tells which group is whose; without a network the groups' paths are the
// names: "layers/dense_1/0". Throws Error{data} if the groups do not follow from the network, and Json::exception if
// the network is not as Keras writes it. `shown` is the file's name in messages.
using KerasNames = std::vector<std::vector<std::string>>;
KerasNames keras_names(const Hdf5File& file, const Json& network, const std::string& shown);

// The two layouts: groups of numbered variables, which Keras 2.12 and later write into .keras and .weights.h5 files;
// and groups that are called like their layers and list the names of their weights, in .h5 files.
KerasNames names_of_variables(const Hdf5File& file, const Json& network, const std::string& shown);
KerasNames names_of_layers(const Hdf5File& file, const Json& network, const std::string& shown);

}  // namespace trainctl
