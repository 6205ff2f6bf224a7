// Loops over channels in tiles with widths that the compiler knows, so that a tile's accumulators stay in registers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {

inline constexpr int widest_tile = 64;

template <int width>
using Width = std::integral_constant<int, width>;

// Calls body(first channel, Width<w>{}) for tiles of 64, 32, 16, 4 and 1 channels that cover [0, channels). The body
// must be inlinable (TRAINCTL_INLINE).
template <class Body>
TRAINCTL_INLINE inline void each_tile(std::int64_t channels, const Body& body) {
  std::int64_t first = 0;
  for (; first + 64 <= channels; first += 64) body(first, Width<64>{});
  for (; first + 32 <= channels; first += 32) body(first, Width<32>{});
  for (; first + 16 <= channels; first += 16) body(first, Width<16>{});
  for (; first + 4 <= channels; first += 4) body(first, Width<4>{});
  for (; first < channels; ++first) body(first, Width<1>{});
}

}  // namespace trainctl::cpu
