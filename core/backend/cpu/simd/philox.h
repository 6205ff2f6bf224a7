// Random words of Philox, drawn many at a time with vector instructions.
#pragma once

#include <cstdint>

#include "core/base/random.h"

namespace trainctl::cpu {

inline constexpr int drawn_blocks = 16;               // Philox blocks that are drawn together
inline constexpr int drawn_words = 4 * drawn_blocks;  // random words of these blocks

// Writes the words of `drawn_blocks` consecutive blocks from block `index` on. The words equal those of
// RandomKey::block().
void draw_words(const RandomKey& key, std::uint64_t sample, std::uint32_t index, std::uint32_t* words);

}  // namespace trainctl::cpu
