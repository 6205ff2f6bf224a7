// Synthetic data, a function of the seed, for benchmarks and trials without files. It can be learnt: the loss falls.
#pragma once

#include <cstdint>
#include <memory>

#include "io/datasets/dataset.h"

namespace trainctl {

// Every class has a pattern of values uniform in [-1, 1); a sample is its class's pattern plus noise, uniform in [-1,
// 1) too. Images (shapes of three dimensions) are bytes in steps of 1/64, other samples float32. Sample i is of class i
// % classes. With `classes` 0 the target is one value: the mean of the products of the sample's values and those of
// pattern 0. The data set is samples [first, first + size) of an endless sequence; splits of a run take different ones.
std::shared_ptr<const Dataset> synthetic_dataset(const Shape& shape, std::int64_t classes, std::int64_t first,
                                                 std::int64_t size, std::uint64_t seed);

}  // namespace trainctl
