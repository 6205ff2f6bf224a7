// Sums in the order of a tree, by means of a stack: a node is formed as soon as its right half is there.
#include "parallel/strategies/reproducible/tree.h"

#include <algorithm>
#include <bit>
#include <set>

#include "core/base/error.h"

namespace trainctl {
namespace {

// The slots of a rank's sums: a leaf that completes k sums lies in slot k where that is free, which it is unless the
// number of leaves is odd, and so does their sum. Leaves of equal positions in the tree are treated alike.
class Slots {
 public:
  int take(int wanted) {
    while (taken_.contains(wanted)) ++wanted;
    taken_.insert(wanted);
    used_ = std::max(used_, wanted + 1);
    return wanted;
  }
  void leave(int slot) { taken_.erase(slot); }
  int used() const { return used_; }

 private:
  std::set<int> taken_;
  int used_ = 0;
};

// How many of the nodes on the stack the last one completes: each is the left half of a node of which all behind it
// make the right half. `top` becomes their sum.
int completed(const std::vector<LeafRange>& stack, int leaves, LeafRange& top) {
  int count = 0;
  for (auto left = stack.rbegin(); left != stack.rend() && are_halves(*left, top, leaves); ++left) {
    top.first = left->first;
    ++count;
  }
  return count;
}

}  // namespace

bool are_halves(const LeafRange& left, const LeafRange& right, int leaves) {
  const int size = left.count();
  return left.end == right.first && std::has_single_bit(static_cast<unsigned>(size)) && left.first % (2 * size) == 0 &&
         right.end == std::min(left.first + 2 * size, leaves);
}

LeafSums sums_of_leaves(const LeafRange& own, int leaves) {
  LeafSums result;
  Slots slots;
  std::vector<LeafRange> stack;
  std::vector<int> slot_of;
  for (int leaf = own.first; leaf < own.end; ++leaf) {
    LeafRange sum{leaf, leaf + 1};
    const auto merges = static_cast<std::size_t>(completed(stack, leaves, sum));
    LeafStep step;
    step.leaf_slot = step.sum_slot = slots.take(static_cast<int>(merges));
    if (merges > 0) {
      step.summed.assign(slot_of.end() - static_cast<std::ptrdiff_t>(merges), slot_of.end());
      stack.resize(stack.size() - merges);
      slot_of.resize(slot_of.size() - merges);
      for (int slot : step.summed) slots.leave(slot);
      if (stack.empty() && leaf + 1 == own.end) step.sum_slot = 0;  // of all leaves
    }
    stack.push_back(sum);
    slot_of.push_back(step.sum_slot);
    result.steps.push_back(std::move(step));
  }
  for (std::size_t i = 0; i < stack.size(); ++i) result.sums.push_back({stack[i], slot_of[i]});
  result.slots = slots.used();
  return result;
}

namespace {

// A sum on the stack of dealt leaves, and how this round forms it: by the sums on the stack before it and by leaves of
// the round.
struct StackEntry {
  LeafRange leaves;
  std::vector<int> places;        // of the stack before the round, in the order in which they are read
  std::vector<Summand> summands;  // of those, input -1 stands for what was received
  bool is_new = true;
};

// What a round does for an entry of the stack: the inputs are numbered, what was received behind all others.
StackedSum stacked_sum(const StackEntry& entry, int place) {
  StackedSum sum{entry.places, entry.summands, place};
  int next = 0;
  for (Summand& summand : sum.summands) {
    summand.input = summand.input < 0 ? static_cast<int>(sum.places.size()) : next++;
  }
  return sum;
}

}  // namespace

std::vector<std::vector<StackedSum>> sums_of_rounds(int leaves, int replicas) {
  std::vector<std::vector<StackedSum>> rounds;
  std::vector<StackEntry> stack;
  for (int first = 0; first < leaves; first += replicas) {
    for (std::size_t place = 0; place < stack.size(); ++place) {
      stack[place] = {stack[place].leaves, {static_cast<int>(place)}, {{0, 0, 0}}, false};
    }
    for (int leaf = first; leaf < std::min(first + replicas, leaves); ++leaf) {
      StackEntry sum{{leaf, leaf + 1}, {}, {}};
      std::vector<LeafRange> ranges;
      for (const StackEntry& entry : stack) ranges.push_back(entry.leaves);
      const int merges = completed(ranges, leaves, sum.leaves);
      for (auto entry = stack.end() - merges; entry != stack.end(); ++entry) {
        sum.places.insert(sum.places.end(), entry->places.begin(), entry->places.end());
        sum.summands.insert(sum.summands.end(), entry->summands.begin(), entry->summands.end());
      }
      stack.resize(stack.size() - static_cast<std::size_t>(merges));
      sum.summands.push_back({-1, leaf - first, merges});
      stack.push_back(std::move(sum));
    }
    std::vector<StackedSum>& formed = rounds.emplace_back();
    for (std::size_t place = 0; place < stack.size(); ++place) {
      if (stack[place].is_new) formed.push_back(stacked_sum(stack[place], static_cast<int>(place)));
    }
  }
  require(stack.size() == 1, "the sums of all rounds make the tree");
  return rounds;
}

std::vector<Summand> order_of_sums(const std::vector<PlacedSum>& sums, int leaves) {
  std::vector<Summand> order;
  std::vector<LeafRange> stack;
  for (const PlacedSum& sum : sums) {
    LeafRange top = sum.leaves;
    const int merges = completed(stack, leaves, top);
    stack.resize(stack.size() - static_cast<std::size_t>(merges));
    stack.push_back(top);
    order.push_back({sum.input, sum.part, merges});
  }
  require(stack.size() == 1, "the sums of all ranks make the tree");
  return order;
}

}  // namespace trainctl
