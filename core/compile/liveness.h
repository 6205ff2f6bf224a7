// Plans static memory: the offsets of tensors in one arena, from their lifetimes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trainctl {

// Memory that a tensor, or an op's workspace (first == last), needs during a range of ops, which are numbered in linear
// order.
struct Lifetime {
  std::int64_t bytes = 0;
  int first = 0;  // the op that writes it
  int last = 0;   // the last op that reads it, at least `first`
  // The number of a lifetime that ends at `first` and has the same size; this lifetime takes over its memory in place.
  // -1: no such lifetime.
  int continues = -1;
};

struct ArenaPlan {
  std::vector<std::int64_t> offsets;  // one offset for each lifetime, in bytes: multiples of the alignment
  std::int64_t bytes = 0;             // size of the arena
  std::int64_t lower_bound = 0;       // largest number of bytes that are in use at the same time: no plan needs fewer
};

// Plans the offsets: two lifetimes that overlap in time never overlap in memory, unless one continues the other. Equal
// lifetimes result in equal plans.
ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, std::int64_t alignment = 64);

}  // namespace trainctl
