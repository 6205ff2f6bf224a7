// `normalize: measured`: mean and standard deviation of the training part.
#pragma once

#include "io/datasets/dataset.h"
#include "io/loader/order.h"
#include "io/loader/part.h"
#include "io/loader/transform_options.h"

namespace trainctl {

// Exactly those of all samples of the subset behind the transforms so far, for each channel, the same bits whatever the
// number of threads. A channel that never changes gets a deviation of 1. Throws what reading throws; with on_error skip
// samples that cannot be read do not count.
Statistics measure_statistics(const Dataset& dataset, const Subset& subset, const TransformPlan& so_far, int threads,
                              OnError on_error);

}  // namespace trainctl
