// Counter-based random numbers: Philox 4x32-10 with the key (seed, purpose, step or epoch, sample, hash of a name).
//
// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). There is no stream and no state:
// a number depends only on its key and position, so that it is the same for any number of ranks, threads and workers,
// and after a restart.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace trainctl {

// The purpose of a random number. It is part of the key, so that no two uses share numbers. Never renumber: equal seeds
// must produce equal numbers in every version.
enum class Purpose : std::uint32_t {
  initialize = 1,
  shuffle = 2,
  split = 3,
  dropout = 4,
  augment = 5,
  synthetic = 6,
  fingerprint = 7,
  noise = 8,
  skipped = 9,
  generate = 10,
  numbers = 11,
};

constexpr int philox_words = 4;  // number of words in a block
using PhiloxBlock = std::array<std::uint32_t, philox_words>;

// The Philox 4x32-10 block function.
constexpr PhiloxBlock philox(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// The 32-bit FNV-1a hash of a name, such as a layer's: one component of the key.
constexpr std::uint32_t name_hash(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

// The key of a family of random numbers, without the position. `round` is the epoch or the step; `name` is a
// name_hash().
struct RandomKey {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::initialize;
  std::uint32_t round = 0;
  std::uint32_t name = 0;

  // Philox's counter for a sample and an index within the sample; `index` counts blocks of four words.
  constexpr PhiloxBlock counter(std::uint64_t sample, std::uint32_t index = 0) const {
    const std::uint32_t mixed = name ^ (static_cast<std::uint32_t>(purpose) * 0x85EBCA6B);
    return {static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32) ^ mixed, index, round};
  }
  // The block of four random words at that counter.
  constexpr PhiloxBlock block(std::uint64_t sample, std::uint32_t index = 0) const {
    return philox(counter(sample, index), {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  }
};

// Converts the upper 24 bits of a word to a number in [0, 1), exactly in float32.
constexpr float uniform01(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

}  // namespace trainctl
