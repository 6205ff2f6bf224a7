// Random words of Philox for vectorised loops.
#pragma once

#include <cstdint>

#include "core/backend/cpu/simd/simd.h"
#include "core/base/random.h"

namespace trainctl::cpu {

inline constexpr int drawn_blocks = 16;               // Philox blocks that are drawn together
inline constexpr int drawn_words = 4 * drawn_blocks;  // random words of these blocks

// Writes the words of `drawn_blocks` consecutive blocks from block `index` on, by vectorised loops. The words equal the
// words of RandomKey::block().
TRAINCTL_INLINE inline void draw_words(const RandomKey& key, std::uint64_t sample, std::uint32_t index,
                                       std::uint32_t* target) {
  const PhiloxBlock start = key.counter(sample, index);
  const auto low = static_cast<std::uint32_t>(key.seed), high = static_cast<std::uint32_t>(key.seed >> 32);
  std::uint32_t drawn[4][drawn_blocks];
#pragma omp simd
  for (int b = 0; b < drawn_blocks; ++b) {
    std::uint32_t c0 = start[0], c1 = start[1], c2 = start[2] + static_cast<std::uint32_t>(b), c3 = start[3];
    std::uint32_t k0 = low, k1 = high;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0, p1 = std::uint64_t{0xCD9E8D57} * c2;
      c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c1 = static_cast<std::uint32_t>(p1);
      c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c3 = static_cast<std::uint32_t>(p0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    drawn[0][b] = c0;
    drawn[1][b] = c1;
    drawn[2][b] = c2;
    drawn[3][b] = c3;
  }
  for (int b = 0; b < drawn_blocks; ++b) {
    for (int word = 0; word < 4; ++word) target[4 * b + word] = drawn[word][b];
  }
}

}  // namespace trainctl::cpu
