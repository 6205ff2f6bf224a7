// From class weights as the config states them to a weight for each class.
#pragma once

#include <vector>

#include "core/metrics/class_weights.h"
#include "io/datasets/dataset.h"
#include "io/loader/splits/order.h"

namespace trainctl {

// A weight for each class of the targets, counted over the samples of `training`. Throws Error{config} where the
// targets are no classes of whole samples, a name is no class, or a class that is to be balanced has no sample.
std::vector<float> weights_by_class(const ClassWeights& stated, const Dataset& targets, const Subset& training);

}  // namespace trainctl
