// The tree in which reproducible mode adds what logical shards contribute: which of its sums a rank forms alone, in
// what order, and in which memory.
#pragma once

#include <vector>

#include "core/graph/ops/training/tree_sum.h"
#include "core/program/logical_shards.h"

namespace trainctl {

// The tree has the shards of a batch as leaves, numbered from 0; a node of 2^k leaves begins at a multiple of 2^k. A
// node whose right half is behind the last leaf is its left half. The value of a node is left half + right half.

// Whether two neighbouring nodes are the halves of a node, in a tree of so many leaves.
bool are_halves(const LeafRange& left, const LeafRange& right, int leaves);

// What a rank does behind the backward pass of one of its leaves: it puts the leaf's gradients into a slot, and adds
// them to sums of leaves before.
struct LeafStep {
  int leaf_slot = 0;        // where the backward pass writes the leaf's gradients
  std::vector<int> summed;  // slots of the sums that the leaf completes, in the order of their leaves; may be empty
  int sum_slot = 0;         // where the sum of all of them and the leaf is put; leaf_slot where nothing is summed

  bool operator==(const LeafStep&) const = default;
};

// A sum that a rank formed alone, and its slot.
struct LeafSum {
  LeafRange leaves;
  int slot = 0;
};

// The sums of a rank's leaves: those in which each belongs to the whole tree, as few and as large as its leaves allow.
struct LeafSums {
  std::vector<LeafStep> steps;  // by leaf
  std::vector<LeafSum> sums;    // in the order of their leaves; of one, its slot is 0
  int slots = 0;                // that were used
};
LeafSums sums_of_leaves(const LeafRange& own, int leaves);

// A sum that is ready, and where: its input and part are those of its Summand.
struct PlacedSum {
  LeafRange leaves;
  int input = 0;
  int part = 0;
};

// The order in which the sums of all ranks, which lie in `leaves` one behind the other, are added.
std::vector<Summand> order_of_sums(const std::vector<PlacedSum>& sums, int leaves);

// A sum that is formed of sums in slots: the summands are those of `slots`, in this order, and of one input more behind
// them, where such a one is.
struct SlotSum {
  std::vector<int> slots;
  std::vector<Summand> summands;
  int slot = 0;  // where the sum is put: slots[0], or a free one where there are no slots

  bool operator==(const SlotSum&) const = default;
};

// The sums of a rank's leaves where several streams compute them, one leaf each at a time. Such a round has leaves that
// follow each other; the sums that they complete are formed behind it.
struct StreamSums {
  std::vector<int> leaf_slots;               // by leaf: where the backward pass writes the leaf's gradients
  std::vector<std::vector<SlotSum>> formed;  // by round, in this order
  std::vector<LeafSum> sums;                 // as in LeafSums
  int slots = 0;                             // that were used
};
StreamSums sums_of_streams(const LeafRange& own, int leaves, int streams);

// If the leaves are interleaved (LogicalShards::interleaved), each replica has one leaf of every round, and the leaves
// of a round follow each other in the tree. A replica adds its part of all of them with a stack that outlives the
// rounds, whose entries are slots. Returns the sums of every round, in the order in which they are formed. The input
// after the slots is what was received in the round; its part r is that of replica r's leaf. After the last round slot
// 0 holds the whole sum.
std::vector<std::vector<SlotSum>> sums_of_rounds(int leaves, int replicas);

}  // namespace trainctl
