// Compares the order of the sums of logical shards with its definition: the recursive sum over the nodes of a tree.
#include "parallel/strategies/reproducible/tree.h"

#include <bit>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "test/catch.h"

namespace trainctl::tree_test {
namespace {

// The value, as an expression, of a tree node that spans `size` leaves from `first` on, of which only those below
// `leaves` exist.
std::string whole_tree(int first, int size, int leaves) {
  if (size == 1) return std::to_string(first);
  const int half = size / 2;
  if (first + half >= leaves) return whole_tree(first, half, leaves);
  return "(" + whole_tree(first, half, leaves) + "+" + whole_tree(first + half, half, leaves) + ")";
}

// The contents of a rank's slots after its steps.
std::map<int, std::string> run(const LeafSums& sums, int first) {
  std::map<int, std::string> slots;
  for (std::size_t i = 0; i < sums.steps.size(); ++i) {
    const LeafStep& step = sums.steps[i];
    std::string sum = slots[step.leaf_slot] = std::to_string(first + static_cast<int>(i));
    for (auto slot = step.summed.rbegin(); slot != step.summed.rend(); ++slot)
      sum = "(" + slots.at(*slot) + "+" + sum + ")";
    slots[step.sum_slot] = sum;
  }
  return slots;
}

}  // namespace

TEST_CASE("the sums of any number of ranks make the same tree") {
  for (int leaves = 1; leaves <= 33; ++leaves) {
    const std::string expected = whole_tree(0, static_cast<int>(std::bit_ceil(static_cast<unsigned>(leaves))), leaves);
    for (int shards = leaves; shards <= leaves + 5; ++shards) {
      for (int replicas = 1; replicas <= shards; ++replicas) {
        CAPTURE(leaves, shards, replicas);
        std::vector<PlacedSum> placed;
        std::map<std::pair<int, int>, std::string> values;
        for (int replica = 0; replica < replicas; ++replica) {
          const LeafRange own = LogicalShards{shards, 1}.row_of(replica, replicas, leaves);
          const LeafSums sums = sums_of_leaves(own, leaves);
          REQUIRE(std::ssize(sums.steps) == own.count());
          const std::map<int, std::string> slots = run(sums, own.first);
          if (sums.sums.size() == 1) REQUIRE(sums.sums[0].slot == 0);
          for (std::size_t i = 0; i < sums.sums.size(); ++i) {
            placed.push_back({sums.sums[i].leaves, static_cast<int>(i), replica});
            values[{static_cast<int>(i), replica}] = slots.at(sums.sums[i].slot);
          }
        }
        std::vector<std::string> stack;
        for (const Summand& summand : order_of_sums(placed, leaves)) {
          stack.push_back(values.at({summand.input, summand.part}));
          for (int merge = 0; merge < summand.merges; ++merge) {
            const std::string right = stack.back();
            stack.pop_back();
            stack.back() = "(" + stack.back() + "+" + right + ")";
          }
        }
        REQUIRE(stack == std::vector<std::string>{expected});
      }
    }
  }
}

TEST_CASE("with a power of two of ranks, a rank forms one sum and needs a slot for each level and one more") {
  for (int levels = 0; levels <= 6; ++levels) {
    const int shards = 1 << levels;
    for (int replicas = 1; replicas <= shards; replicas *= 2) {
      for (int replica = 0; replica < replicas; ++replica) {
        const LeafSums sums = sums_of_leaves(LogicalShards{shards, 1}.row_of(replica, replicas, shards), shards);
        CAPTURE(shards, replicas, replica);
        CHECK(sums.sums.size() == 1);
        CHECK(sums.slots == static_cast<int>(std::bit_width(static_cast<unsigned>(shards / replicas))));
      }
    }
  }
}

namespace {

// The value of a sum of slots, followed by received parts.
std::string value_of(const SlotSum& sum, const std::map<int, std::string>& slots,
                     const std::function<std::string(int)>& received = {}) {
  std::vector<std::string> values;
  for (const Summand& summand : sum.summands) {
    const bool in_slot = summand.input < static_cast<int>(sum.slots.size());
    values.push_back(in_slot ? slots.at(sum.slots[static_cast<std::size_t>(summand.input)]) : received(summand.part));
    for (int merge = 0; merge < summand.merges; ++merge) {
      const std::string right = values.back();
      values.pop_back();
      values.back() = "(" + values.back() + "+" + right + ")";
    }
  }
  REQUIRE(values.size() == 1);
  return values.front();
}

}  // namespace

TEST_CASE("the sums of leaves that are interleaved over any number of replicas make the same tree") {
  for (int leaves = 1; leaves <= 33; ++leaves) {
    const std::string expected = whole_tree(0, static_cast<int>(std::bit_ceil(static_cast<unsigned>(leaves))), leaves);
    for (int replicas = 1; replicas <= leaves + 3; ++replicas) {
      CAPTURE(leaves, replicas);
      std::map<int, std::string> stack;
      int first = 0, used_slots = 0;
      for (const std::vector<SlotSum>& round : sums_of_rounds(leaves, replicas)) {
        for (const SlotSum& sum : round) {
          if (!sum.slots.empty()) CHECK(sum.slot == sum.slots.front());
          stack[sum.slot] = value_of(sum, stack, [&](int part) { return std::to_string(first + part); });
          used_slots = std::max(used_slots, sum.slot + 1);
        }
        first += replicas;
      }
      CHECK(stack.at(0) == expected);
      CHECK(used_slots <= static_cast<int>(std::bit_width(static_cast<unsigned>(leaves))));
    }
  }
}

TEST_CASE("the sums of several compute streams equal those of one stream") {
  for (int leaves = 1; leaves <= 33; ++leaves) {
    for (int first = 0; first < leaves; first += 1 + leaves / 7) {
      for (int end = first + 1; end <= leaves; end += 1 + leaves / 5) {
        const LeafSums alone = sums_of_leaves({first, end}, leaves);
        const std::map<int, std::string> slots_alone = run(alone, first);
        for (int streams = 1; streams <= end - first; ++streams) {
          CAPTURE(leaves, first, end, streams);
          const StreamSums sums = sums_of_streams({first, end}, leaves, streams);
          REQUIRE(std::ssize(sums.leaf_slots) == end - first);
          std::map<int, std::string> slots;
          std::size_t leaf = 0;
          for (const std::vector<SlotSum>& computed : sums.computed) {
            std::set<int> of_round;
            for (int s = 0; s < streams && leaf < sums.leaf_slots.size(); ++s, ++leaf) {
              of_round.insert(sums.leaf_slots[leaf]);
              slots[sums.leaf_slots[leaf]] = std::to_string(first + static_cast<int>(leaf));
            }
            CHECK(std::ssize(of_round) ==
                  (leaf % static_cast<std::size_t>(streams) == 0 ? streams : std::ssize(sums.leaf_slots) % streams));
            for (const SlotSum& sum : computed) {
              CHECK(sum.slot == sum.slots.front());
              slots[sum.slot] = value_of(sum, slots);
            }
          }
          REQUIRE(sums.sums.size() == alone.sums.size());
          for (std::size_t i = 0; i < alone.sums.size(); ++i) {
            CHECK(sums.sums[i].leaves.first == alone.sums[i].leaves.first);
            CHECK(sums.sums[i].leaves.end == alone.sums[i].leaves.end);
            CHECK(slots.at(sums.sums[i].slot) == slots_alone.at(alone.sums[i].slot));
          }
          if (sums.sums.size() == 1) CHECK(sums.sums[0].slot == 0);
        }
      }
    }
  }
}

TEST_CASE("compute streams need a slot each, and one for each level above a round") {
  for (int levels = 0; levels <= 6; ++levels) {
    for (int at_once = 0; at_once <= levels; ++at_once) {
      const int leaves = 1 << levels, streams = 1 << at_once;
      CAPTURE(leaves, streams);
      CHECK(sums_of_streams({0, leaves}, leaves, streams).slots == streams + levels - at_once);
    }
  }
}

}  // namespace trainctl::tree_test
