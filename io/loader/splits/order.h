// The order of samples: permutations computed from a key without memory, and the subsets of a data set made with them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace trainctl {

// A permutation of [0, n), a function of the key: a generalized Feistel network on a grid a x b just large enough
// for n, with Philox as round function. Images outside [0, n) are mapped again until they are inside ("cycle
// walking", Black and Rogaway 2002).
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

// A subset of a data set's samples: maps a position in it to a sample's number. Without stratification it takes no
// memory.
class Subset {
 public:
  static Subset all(std::int64_t n);

  struct Split;
  // Splits off round(fraction * n) samples, at least one, for validation: a function of the arguments only.
  static Split split(std::int64_t n, double fraction, std::uint64_t seed);
  // Splits in proportion from each class, to within one sample; `label` gives the class of a sample. Both subsets keep
  // the data set's order.
  static Split stratified(std::int64_t n, const std::function<std::int32_t(std::int64_t)>& label, double fraction,
                          std::uint64_t seed);

  std::int64_t size() const { return size_; }
  std::int64_t operator[](std::int64_t position) const;

 private:
  std::int64_t size_ = 0;
  std::int64_t first_ = 0;                                    // first position in the permutation
  std::shared_ptr<const Permutation> permutation_;            // null: the identity
  std::shared_ptr<const std::vector<std::int64_t>> samples_;  // of a stratified split: the samples' numbers; else null
};

struct Subset::Split {
  Subset training, validation;
};

// The order of an epoch of n samples: a permutation by seed and epoch, or the identity without `shuffle`.
class EpochOrder {
 public:
  EpochOrder(std::int64_t n, std::uint64_t seed, std::int64_t epoch, bool shuffle);

  std::int64_t operator[](std::int64_t position) const { return shuffle_ ? permutation_(position) : position; }

 private:
  Permutation permutation_;
  bool shuffle_;
};

}  // namespace trainctl
