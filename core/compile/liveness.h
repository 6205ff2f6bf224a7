// Static memory: which offsets in one arena tensors take, given when they live.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trainctl {

// One need for memory over a linear order of ops: a tensor, or an op's workspace (first == last).
struct Lifetime {
  std::int64_t bytes = 0;
  int first = 0;  // the op that writes it
  int last = 0;   // the last op that reads it, at least `first`
  int continues =
      -1;  // in place: this one takes over the memory of an earlier lifetime that ends at `first`; equal bytes
};

struct ArenaPlan {
  std::vector<std::int64_t> offsets;  // of each lifetime, multiples of the alignment
  std::int64_t bytes = 0;             // of the arena
  std::int64_t lower_bound = 0;       // the most bytes alive at once: no plan can do with less
};

// Two lifetimes that overlap in time never overlap in memory, unless one continues the other. Deterministic.
ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, std::int64_t alignment = 64);

}  // namespace trainctl
