// Plans static memory by greedy best fit: takes blocks in a fixed order and puts each into the smallest gap that is
// free during its lifetime. Tries several orders and uses the smallest arena, since no order is the best for every
// network.
#include "core/compile/liveness.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "core/base/checked.h"
#include "core/base/error.h"

namespace trainctl {
namespace {

// A block of memory for a chain of lifetimes. Each lifetime continues the previous lifetime.
struct Block {
  std::int64_t bytes = 0;  // rounded up to the alignment
  int first = 0;
  int last = 0;
};

// Joins lifetimes into blocks and writes the number of each lifetime's block. A lifetime only continues a lifetime that
// begins earlier; the two may be in either order in `lifetimes`.
std::vector<Block> merge(std::span<const Lifetime> lifetimes, std::int64_t alignment, std::vector<int>& block_of) {
  std::vector<Block> blocks;
  block_of.assign(lifetimes.size(), -1);
  const std::function<int(std::size_t)> visit = [&](std::size_t i) {
    if (block_of[i] >= 0) return block_of[i];
    const Lifetime& lifetime = lifetimes[i];
    require(lifetime.bytes >= 0 && lifetime.first <= lifetime.last,
            "a lifetime has a negative size, or ends before its start");
    if (lifetime.continues < 0) {
      blocks.push_back({round_up(lifetime.bytes, alignment), lifetime.first, lifetime.last});
      return block_of[i] = static_cast<int>(blocks.size()) - 1;
    }
    const Lifetime& before = lifetimes[static_cast<std::size_t>(lifetime.continues)];
    require(before.bytes == lifetime.bytes && before.last == lifetime.first,
            "a lifetime continues a lifetime that has another size or does not end at its start");
    const int block = visit(static_cast<std::size_t>(lifetime.continues));
    Block& whole = blocks[static_cast<std::size_t>(block)];
    whole.last = std::max(whole.last, lifetime.last);
    return block_of[i] = block;
  };
  for (std::size_t i = 0; i < lifetimes.size(); ++i) visit(i);
  return blocks;
}

// Returns the largest number of bytes that are in use at the same time.
std::int64_t max_alive(const std::vector<Block>& blocks) {
  std::map<int, std::int64_t> change;
  for (const Block& block : blocks) {
    change[block.first] = checked_add(change[block.first], block.bytes);
    change[block.last + 1] -= block.bytes;
  }
  std::int64_t alive = 0, maximum = 0;
  for (const auto& [time, bytes] : change) maximum = std::max(maximum, alive = checked_add(alive, bytes));
  return maximum;
}

struct Placed {
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};

Placed place(const std::vector<Block>& blocks, const std::vector<int>& order) {
  struct Taken {
    std::int64_t begin = 0, end = 0;
    int first = 0, last = 0;
  };
  Placed result{std::vector<std::int64_t>(blocks.size()), 0};
  std::vector<Taken> by_offset;  // blocks placed so far; a vector, since each new block is compared with all blocks
  for (int b : order) {
    const Block& block = blocks[static_cast<std::size_t>(b)];
    if (block.bytes == 0) continue;
    std::int64_t best = -1, smallest = std::numeric_limits<std::int64_t>::max(), end = 0;
    for (const Taken& other : by_offset) {
      if (block.first > other.last || other.first > block.last) continue;
      const std::int64_t gap = other.begin - end;
      if (gap >= block.bytes && gap < smallest) {
        smallest = gap;
        best = end;
      }
      end = std::max(end, other.end);
    }
    const std::int64_t begin = best >= 0 ? best : end;
    const Taken taken{begin, checked_add(begin, block.bytes), block.first, block.last};
    result.offsets[static_cast<std::size_t>(b)] = begin;
    result.bytes = std::max(result.bytes, taken.end);
    const auto after = std::upper_bound(by_offset.begin(), by_offset.end(), taken,
                                        [](const Taken& a, const Taken& c) { return a.begin < c.begin; });
    by_offset.insert(after, taken);
  }
  return result;
}

}  // namespace

ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, std::int64_t alignment) {
  require(alignment >= 1, "the alignment is not positive");
  std::vector<int> block_of;
  const std::vector<Block> blocks = merge(lifetimes, alignment, block_of);
  const std::int64_t lower_bound = max_alive(blocks);

  using Rank = std::tuple<std::int64_t, std::int64_t, int>;
  const std::function<Rank(const Block&)> ranks[] = {
      [](const Block& b) {
        return Rank{-b.bytes, -(b.last - b.first), b.first};
      },  // largest first
      [](const Block& b) {
        return Rank{-(b.last - b.first), -b.bytes, b.first};
      },  // longest first
      [](const Block& b) {
        return Rank{-saturated_multiply(b.bytes, b.last - b.first + 1), -b.bytes, b.first};
      },
      [](const Block& b) {
        return Rank{b.first, -b.bytes, -b.last};
      },  // in the order of their first ops
      [](const Block& b) {
        return Rank{-b.last, -b.bytes, b.first};
      },  // in the reverse order of their last ops
  };
  // Networks of thousands of layers try fewer orders: the time of each grows with the square of the number of blocks.
  constexpr double max_comparisons = 2e8;
  const double comparisons = static_cast<double>(blocks.size()) * static_cast<double>(blocks.size()) / 2;
  int orders = 0;
  Placed best;
  best.bytes = -1;
  std::vector<int> order(blocks.size());
  for (const auto& rank : ranks) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return rank(blocks[static_cast<std::size_t>(a)]) < rank(blocks[static_cast<std::size_t>(b)]);
    });
    Placed candidate = place(blocks, order);
    if (best.bytes < 0 || candidate.bytes < best.bytes) best = std::move(candidate);
    if (best.bytes == lower_bound || comparisons * ++orders > max_comparisons) break;
  }

  ArenaPlan plan{{}, best.bytes, lower_bound};
  for (int block : block_of) plan.offsets.push_back(best.offsets[static_cast<std::size_t>(block)]);
  return plan;
}

}  // namespace trainctl
