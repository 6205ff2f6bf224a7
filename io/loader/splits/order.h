// The order of samples: permutations that are computed from a key without memory, and the subsets of a data set that
// are made with them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace trainctl {

// A permutation of [0, n), determined by the key: a generalized Feistel network on a grid a x b that is just large
// enough for n elements, with Philox as round function. Results outside of [0, n) are mapped again until they are
// inside ("cycle walking", Black and Rogaway 2002).
class Permutation {
 public:
  Permutation(std::int64_t n, const RandomKey& key);

  std::int64_t size() const { return n_; }
  std::int64_t operator()(std::int64_t position) const;

 private:
  std::int64_t n_;
  std::uint64_t a_, b_;  // a * b >= n, a * b - n < a
  RandomKey key_;
};

// A subset of a data set's samples: maps a position in the subset to a sample's number. Without stratification it takes
// no memory.
class Subset {
 public:
  static Subset all(std::int64_t n);
  // The samples [first, end).
  static Subset range(std::int64_t first, std::int64_t end);

  struct Split;
  // Splits off round(fraction * n) samples, at least one, for validation. The result depends on the arguments only.
  static Split split(std::int64_t n, double fraction, std::uint64_t seed);
  // Splits off the same fraction of each class, up to one sample; `label` returns the class of a sample. Both subsets
  // keep the data set's order.
  static Split stratified(std::int64_t n, const std::function<std::int32_t(std::int64_t)>& label, double fraction,
                          std::uint64_t seed);

  std::int64_t size() const { return size_; }
  std::int64_t operator[](std::int64_t position) const;

 private:
  std::int64_t size_ = 0;
  std::int64_t first_ = 0;                                    // first position in the permutation, or first sample
  std::shared_ptr<const Permutation> permutation_;            // null: the identity
  std::shared_ptr<const std::vector<std::int64_t>> samples_;  // for stratified splits: the samples' numbers; else null
};

struct Subset::Split {
  Subset training, validation;
};

// The order of an epoch of n samples: a permutation determined by seed and epoch, or the identity without `shuffle`.
class EpochOrder {
 public:
  EpochOrder(std::int64_t n, std::uint64_t seed, std::int64_t epoch, bool shuffle);

  std::int64_t operator[](std::int64_t position) const { return shuffle_ ? permutation_(position) : position; }

 private:
  Permutation permutation_;
  bool shuffle_;
};

}  // namespace trainctl
