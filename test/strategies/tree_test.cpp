// The order of the sums of logical shards against its definition: the recursive sum over the nodes of a tree.
#include "parallel/strategies/reproducible/tree.h"

#include <bit>
#include <map>
#include <string>

#include "test/catch.h"

using namespace trainctl;

namespace {

// The value of a node of so many leaves as an expression.
std::string whole_tree(int first, int size, int leaves) {
  if (size == 1) return std::to_string(first);
  const int half = size / 2;
  if (first + half >= leaves) return whole_tree(first, half, leaves);
  return "(" + whole_tree(first, half, leaves) + "+" + whole_tree(first + half, half, leaves) + ")";
}

// What a rank's slots hold after its steps.
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
          const LeafRange own = LogicalShards{shards, 1}.of_replica(replica, replicas, leaves);
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

TEST_CASE("where the ranks are a power of two, a rank forms one sum and needs a slot for each level and one more") {
  for (int levels = 0; levels <= 6; ++levels) {
    const int shards = 1 << levels;
    for (int replicas = 1; replicas <= shards; replicas *= 2) {
      for (int replica = 0; replica < replicas; ++replica) {
        const LeafSums sums = sums_of_leaves(LogicalShards{shards, 1}.of_replica(replica, replicas, shards), shards);
        CAPTURE(shards, replicas, replica);
        CHECK(sums.sums.size() == 1);
        CHECK(sums.slots == static_cast<int>(std::bit_width(static_cast<unsigned>(shards / replicas))));
      }
    }
  }
}
