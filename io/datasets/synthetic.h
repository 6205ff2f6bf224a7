// Made-up data, a function of the seed: for benchmarks and trials without files. It can be learnt, so that a loss
// falls.
#pragma once

#include <cstdint>
#include <memory>

#include "io/datasets/dataset.h"

namespace trainctl {

// Every class has a pattern, values uniform in [-1, 1); a sample is its class's pattern plus as much noise, uniform
// too: images (shapes of three dimensions) as bytes, in steps of 1/64, others as float32. Classes follow each other:
// sample i is of class i % classes. With classes 0 the target is one value: the mean of the values of the sample times
// those of pattern 0. Samples [first, first + size) of an endless set, so that parts differ.
std::shared_ptr<const Dataset> synthetic_dataset(const Shape& shape, std::int64_t classes, std::int64_t first,
                                                 std::int64_t size, std::uint64_t seed);

}  // namespace trainctl
