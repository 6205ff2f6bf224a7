// `normalize: measured`: measures the mean and standard deviation of the training split.
#pragma once

#include "io/datasets/dataset.h"
#include "io/loader/images/affine.h"
#include "io/loader/inputs/finite_read.h"
#include "io/loader/splits/order.h"

namespace trainctl {

struct TransformPlan;

// Measures the mean and standard deviation by channel of all samples of the subset, after the transforms `so_far`; the
// results are bitwise equal for any number of threads. A constant channel gets a deviation of 1. Throws the errors of
// read_finite(); with OnError::skip, samples that cannot be read are left out.
Statistics measure_statistics(const Dataset& dataset, const Subset& subset, const TransformPlan& so_far, int threads,
                              OnError on_error);

}  // namespace trainctl
