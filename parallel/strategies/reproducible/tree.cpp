// Computes sums in the order of a tree with a stack: a node is computed as soon as its right half is complete.
#include "parallel/strategies/reproducible/tree.h"

#include <algorithm>
#include <bit>
#include <set>

#include "core/base/error.h"

namespace trainctl {
namespace {

// The slots of a rank's sums. A leaf that completes k sums is stored in slot k or the next free slot, and the completed
// sum is stored there, too. Thus leaves at equal positions in the tree have equal steps.
class Slots {
 public:
  int take(int slot) {
    while (taken_.contains(slot)) ++slot;
    taken_.insert(slot);
    used_ = std::max(used_, slot + 1);
    return slot;
  }
  void release(int slot) { taken_.erase(slot); }
  int used() const { return used_; }

 private:
  std::set<int> taken_;
  int used_ = 0;
};

// Returns the number of nodes on the stack that `top` completes, and extends `top` to their sum. A completed node is
// the left half of a node, and all nodes after it are the right half.
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
      const auto first = slot_of.end() - static_cast<std::ptrdiff_t>(merges);
      step.summed.assign(first, slot_of.end());
      stack.resize(stack.size() - merges);
      slot_of.erase(first, slot_of.end());
      for (int slot : step.summed) slots.release(slot);
      if (stack.empty() && leaf + 1 == own.end) step.sum_slot = 0;  // the sum of all leaves
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

// A node of the tree, and the order in which it is added.
struct TreeNode {
  LeafRange leaves;
  std::vector<Summand> summands;
};

// Combines neighbouring sums into nodes, as few and as large as possible.
std::vector<TreeNode> nodes_of(const std::vector<PlacedSum>& sums, int leaves) {
  std::vector<TreeNode> nodes;
  std::vector<LeafRange> stack;
  for (const PlacedSum& sum : sums) {
    LeafRange top = sum.leaves;
    const int merges = completed(stack, leaves, top);
    stack.resize(stack.size() - static_cast<std::size_t>(merges));
    stack.push_back(top);
    TreeNode node{top, {}};
    for (auto left = nodes.end() - merges; left != nodes.end(); ++left) {
      node.summands.insert(node.summands.end(), left->summands.begin(), left->summands.end());
    }
    node.summands.push_back({sum.input, sum.part, merges});
    nodes.resize(stack.size() - 1);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// Converts a node. The inputs of its summands are slots; a negative input means the input that is not a slot. The
// inputs of the result are numbered in the order of the slots, followed by the other input.
SlotSum slot_sum(const TreeNode& node, int slot) {
  SlotSum sum{{}, node.summands, slot};
  for (const Summand& summand : node.summands) {
    if (summand.input >= 0) sum.slots.push_back(summand.input);
  }
  int next = 0;
  for (Summand& summand : sum.summands)
    summand.input = summand.input >= 0 ? next++ : static_cast<int>(sum.slots.size());
  return sum;
}

}  // namespace

std::vector<Summand> order_of_sums(const std::vector<PlacedSum>& sums, int leaves) {
  std::vector<TreeNode> nodes = nodes_of(sums, leaves);
  require(nodes.size() == 1, "the sums of all ranks do not form one tree");
  return std::move(nodes.front().summands);
}

StreamSums sums_of_streams(const LeafRange& own, int leaves, int streams) {
  StreamSums result;
  Slots slots;
  for (int first = own.first; first < own.end; first += streams) {
    std::vector<PlacedSum> placed;
    for (const LeafSum& sum : result.sums) placed.push_back({sum.leaves, sum.slot, 0});
    for (int leaf = first; leaf < std::min(first + streams, own.end); ++leaf) {
      result.leaf_slots.push_back(slots.take(0));
      placed.push_back({{leaf, leaf + 1}, result.leaf_slots.back(), 0});
    }
    result.sums.clear();
    std::vector<SlotSum>& computed = result.computed.emplace_back();
    for (const TreeNode& node : nodes_of(placed, leaves)) {
      const int slot = node.summands.front().input;
      result.sums.push_back({node.leaves, slot});
      if (node.summands.size() == 1) continue;
      computed.push_back(slot_sum(node, slot));
      for (std::size_t i = 1; i < node.summands.size(); ++i) slots.release(node.summands[i].input);
    }
  }
  result.slots = slots.used();
  return result;
}

std::vector<std::vector<SlotSum>> sums_of_rounds(int leaves, int replicas) {
  constexpr int received = -1;
  std::vector<std::vector<SlotSum>> rounds;
  std::vector<LeafRange> stack;
  for (int first = 0; first < leaves; first += replicas) {
    std::vector<PlacedSum> sums;
    for (const LeafRange& node : stack) sums.push_back({node, static_cast<int>(sums.size()), 0});
    for (int leaf = first; leaf < std::min(first + replicas, leaves); ++leaf) {
      sums.push_back({{leaf, leaf + 1}, received, leaf - first});
    }
    stack.clear();
    std::vector<SlotSum>& computed = rounds.emplace_back();
    for (const TreeNode& node : nodes_of(sums, leaves)) {
      const int slot = static_cast<int>(stack.size());
      const bool is_unchanged = node.summands.size() == 1 && node.summands.front().input == slot;
      if (!is_unchanged) computed.push_back(slot_sum(node, slot));
      stack.push_back(node.leaves);
    }
  }
  require(stack.size() == 1, "the sums of all rounds do not form one tree");
  return rounds;
}

}  // namespace trainctl
