// Computes a weight for each class from the class weights in the config.
#pragma once

#include <string>
#include <vector>

#include "core/metrics/class_weights.h"
#include "io/datasets/dataset.h"
#include "io/loader/splits/order.h"

namespace trainctl {

// Returns a weight for each class of the targets; balanced weights are computed from the numbers of samples in
// `training`. Throws Error{config} if the targets are not one class for each sample, if a name is not the name of a
// class, if two names are of the same class, or if a class to be balanced has no sample.
std::vector<float> weights_by_class(const ClassWeights& declared, const Dataset& targets, const Subset& training);

// Returns a warning that names the classes to which a map gives no weight; "" if it gives each class one.
std::string unnamed_classes_warning(const ClassWeights& declared, const DatasetInfo& info);

}  // namespace trainctl
