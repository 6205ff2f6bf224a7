// Synthetic data for benchmarks and trials without files, determined by the seed. It can be learnt: the loss falls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "io/datasets/dataset.h"

namespace trainctl {

// Every class has a pattern of values uniform in [-1, 1); a sample is the pattern of its class plus noise, which is
// uniform in [-1, 1), too. Images (shapes of three dimensions) are bytes in steps of 1/64, other samples are float32.
// Sample i has class i % classes. If `classes` is 0, the target is one value: the mean of the products of the sample's
// values and the values of pattern 0. The data set has the samples [first, first + size) of an endless sequence; the
// splits of a run use different ranges.
std::shared_ptr<const Dataset> synthetic_dataset(const Shape& shape, std::int64_t classes, std::int64_t first,
                                                 std::int64_t size, std::uint64_t seed);

struct SyntheticTokenSizes {
  Shape shape;                  // of a sample
  std::int64_t vocabulary = 1;  // tokens are below it
  // Empty: the target of each position is the token that follows; 0: the target is one value.
  std::optional<std::int64_t> classes;
};

// Tokens for networks that begin with an embedding. Three of four tokens follow from the token before them, or are of
// the 16 tokens of the sample's class; the others are random. If the target is a value, it is the mean of a number in
// [-1, 1) that each token has.
std::shared_ptr<const Dataset> synthetic_tokens(const SyntheticTokenSizes& sizes, std::int64_t first, std::int64_t size,
                                                std::uint64_t seed);

}  // namespace trainctl
