// Sums in the order of a tree, by means of a stack: a node is formed as soon as its right half is there.
#include "parallel/strategies/reproducible/tree.h"

#include <algorithm>
#include <bit>
#include <set>

#include "core/base/error.h"

namespace trainctl {
namespace {

// The slots of a rank's sums: a sum of 2^k leaves lies in slot k where that is free, so that leaves of equal positions
// are treated alike.
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

// The slot of a sum of so many leaves: slot 1 is that of leaves which are added to others at once.
int slot_of_size(int leaves) {
  const int level = std::bit_width(static_cast<unsigned>(leaves)) - 1;
  return level == 0 ? 0 : level + 1;
}

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
    step.leaf_slot = step.sum_slot = slots.take(merges == 0 ? 0 : 1);
    if (merges > 0) {
      step.summed.assign(slot_of.end() - static_cast<std::ptrdiff_t>(merges), slot_of.end());
      stack.resize(stack.size() - merges);
      slot_of.resize(slot_of.size() - merges);
      for (int slot : step.summed) slots.leave(slot);
      slots.leave(step.leaf_slot);
      const bool is_whole = stack.empty() && leaf + 1 == own.end;
      step.sum_slot = slots.take(is_whole ? 0 : slot_of_size(sum.count()));
    }
    stack.push_back(sum);
    slot_of.push_back(step.sum_slot);
    result.steps.push_back(std::move(step));
  }
  for (std::size_t i = 0; i < stack.size(); ++i) result.sums.push_back({stack[i], slot_of[i]});
  result.slots = slots.used();
  return result;
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
