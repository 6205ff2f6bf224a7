// `normalize: measured`: the mean and standard deviation of the training split.
#pragma once

#include "io/datasets/dataset.h"
#include "io/loader/images/affine.h"
#include "io/loader/inputs/finite_read.h"
#include "io/loader/splits/order.h"

namespace trainctl {

struct TransformPlan;

// The mean and standard deviation by channel of all samples of the subset, behind the transforms `so_far`; the bits are
// the same for any number of threads. A constant channel gets a deviation of 1. Throws what reading throws; with
// on_error skip, samples that cannot be read are left out.
Statistics measure_statistics(const Dataset& dataset, const Subset& subset, const TransformPlan& so_far, int threads,
                              OnError on_error);

}  // namespace trainctl
