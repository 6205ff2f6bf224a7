// Computes permutations with Feistel networks, and makes splits and epochs with them.
#include "io/loader/splits/order.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace trainctl {
namespace {

// Rounds of the Feistel network. With fewer rounds, the permutations of grids as small as 2 x 2 are not equally
// frequent.
constexpr std::uint32_t rounds = 8;

std::int64_t validation_count(std::int64_t n, double fraction) {
  const auto count = static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(n)));
  return std::clamp<std::int64_t>(count, std::min<std::int64_t>(1, n), n);
}

std::uint64_t word(const RandomKey& key, std::uint64_t half, std::uint32_t round) {
  const PhiloxBlock block = key.block(half, round);
  return std::uint64_t{block[0]} << 32 | block[1];
}

}  // namespace

Permutation::Permutation(std::int64_t n, const RandomKey& key) : n_(n), key_(key) {
  a_ = static_cast<std::uint64_t>(std::max(1.0, std::ceil(std::sqrt(static_cast<double>(n)))));
  b_ = (static_cast<std::uint64_t>(n) + a_ - 1) / a_;
}

std::int64_t Permutation::operator()(std::int64_t position) const {
  auto value = static_cast<std::uint64_t>(position);
  do {
    std::uint64_t x = value % a_, y = value / a_;
    for (std::uint32_t round = 0; round < rounds; round += 2) {
      x = (x + word(key_, y, round) % a_) % a_;
      y = (y + word(key_, x, round + 1) % b_) % b_;
    }
    value = y * a_ + x;
  } while (value >= static_cast<std::uint64_t>(n_));
  return static_cast<std::int64_t>(value);
}

Subset Subset::all(std::int64_t n) {
  Subset subset;
  subset.size_ = n;
  return subset;
}

Subset Subset::range(std::int64_t first, std::int64_t end) {
  Subset subset = all(end - first);
  subset.first_ = first;
  return subset;
}

Subset::Split Subset::split(std::int64_t n, double fraction, std::uint64_t seed) {
  const std::int64_t validation = validation_count(n, fraction);
  Split split{all(n - validation), all(validation)};
  split.training.permutation_ = std::make_shared<Permutation>(n, RandomKey{seed, Purpose::split});
  split.validation.permutation_ = split.training.permutation_;
  split.validation.first_ = n - validation;
  return split;
}

Subset::Split Subset::stratified(std::int64_t n, const std::function<std::int32_t(std::int64_t)>& label,
                                 double fraction, std::uint64_t seed) {
  std::map<std::int32_t, std::vector<std::int64_t>> classes;
  for (std::int64_t sample = 0; sample < n; ++sample) classes[label(sample)].push_back(sample);
  auto training = std::make_shared<std::vector<std::int64_t>>();
  auto validation = std::make_shared<std::vector<std::int64_t>>();
  const double share = static_cast<double>(validation_count(n, fraction)) / static_cast<double>(n);
  // Number of samples in the classes so far. The number taken from a class is the difference of the rounded shares
  // after and before it.
  std::int64_t seen = 0;
  for (const auto& [which, samples] : classes) {
    const auto size = static_cast<std::int64_t>(samples.size());
    const std::int64_t taken =
        std::llround(share * static_cast<double>(seen + size)) - std::llround(share * static_cast<double>(seen));
    seen += size;
    const Permutation permutation(size, {seed, Purpose::split, 0, static_cast<std::uint32_t>(which) + 1});
    for (std::int64_t i = 0; i < size; ++i) {
      (i < taken ? validation : training)->push_back(samples[static_cast<std::size_t>(permutation(i))]);
    }
  }
  Split split;
  for (const auto& [subset, list] : {std::pair{&split.training, training}, std::pair{&split.validation, validation}}) {
    std::sort(list->begin(), list->end());
    subset->size_ = static_cast<std::int64_t>(list->size());
    subset->samples_ = list;
  }
  return split;
}

std::int64_t Subset::operator[](std::int64_t position) const {
  if (samples_) return (*samples_)[static_cast<std::size_t>(position)];
  return permutation_ ? (*permutation_)(first_ + position) : first_ + position;
}

EpochOrder::EpochOrder(std::int64_t n, std::uint64_t seed, std::int64_t epoch, bool shuffle)
    : permutation_(n, {seed, Purpose::shuffle, static_cast<std::uint32_t>(epoch)}), shuffle_(shuffle) {}

}  // namespace trainctl
