// The tree in which reproducible mode adds the results of logical shards: the sums that a rank computes alone, their
// order and their slots.
#pragma once

#include <vector>

#include "core/graph/ops/training/tree_sum.h"
#include "core/program/logical_shards.h"

namespace trainctl {

// The leaves of the tree are the shards of a batch, numbered from 0; a node of 2^k leaves begins at a multiple of 2^k.
// If the right half of a node would be after the last leaf, the node is equal to its left half. The value of a node is
// left half + right half.

// Whether two neighbouring nodes are the halves of a node, in a tree of `leaves` leaves.
bool are_halves(const LeafRange& left, const LeafRange& right, int leaves);

// The step of a rank for the gradients of one of its leaves: it stores them in a slot and adds them to the sums of
// previous leaves.
struct LeafStep {
  int leaf_slot = 0;        // slot to which the backward pass writes the leaf's gradients
  std::vector<int> summed;  // slots of the sums to which the leaf is added, in the order of their leaves; may be empty
  int sum_slot = 0;         // slot of the sum of `summed` and the leaf; leaf_slot if `summed` is empty

  bool operator==(const LeafStep&) const = default;
};

// A sum that a rank computed alone, and its slot.
struct LeafSum {
  LeafRange leaves;
  int slot = 0;
};

// The sums of a rank's leaves: nodes of the whole tree, as few and as large as its leaves allow.
struct LeafSums {
  std::vector<LeafStep> steps;  // step of each leaf
  std::vector<LeafSum> sums;    // sums in the order of their leaves; a single sum is in slot 0
  int slots = 0;                // number of used slots
};
LeafSums sums_of_leaves(const LeafRange& own, int leaves);

// A computed sum, and the input and part of its Summand.
struct PlacedSum {
  LeafRange leaves;
  int input = 0;
  int part = 0;
};

// Returns the order in which the sums of all ranks are added. `sums`: in the order of their leaves.
std::vector<Summand> order_of_sums(const std::vector<PlacedSum>& sums, int leaves);

// A sum of sums in slots: the inputs of its summands are `slots`, in this order, possibly followed by one other input.
struct SlotSum {
  std::vector<int> slots;
  std::vector<Summand> summands;
  int slot = 0;  // slot of the sum: slots[0], or a free one if there are no slots

  bool operator==(const SlotSum&) const = default;
};

// The sums of a rank's leaves if several streams compute them in rounds, one leaf on each stream. A round has
// consecutive leaves; the sums that they complete are computed after it.
struct StreamSums {
  std::vector<int> leaf_slots;                 // slot to which the backward pass writes each leaf's gradients
  std::vector<std::vector<SlotSum>> computed;  // sums of each round, in the order of computation
  std::vector<LeafSum> sums;                   // as in LeafSums
  int slots = 0;                               // number of used slots
};
StreamSums sums_of_streams(const LeafRange& own, int leaves, int streams);

// If the leaves are interleaved (LogicalShards::interleaved), each replica has one leaf of every round, and the leaves
// of a round are consecutive in the tree. A replica adds its shard of all leaves with a stack of slots that persists
// across rounds. Returns the sums of every round in the order of computation. The input after the slots is the tensor
// received in the round; its part r belongs to replica r's leaf. After the last round slot 0 holds the whole sum.
std::vector<std::vector<SlotSum>> sums_of_rounds(int leaves, int replicas);

}  // namespace trainctl
