// The backward passes of logical shards, which are the leaves of the tree in tree.h.
#pragma once

#include <map>
#include <vector>

#include "core/program/program.h"

namespace trainctl {

// The number of the backward segment that writes the gradients and sums of an item's leaf: one for whole logical
// shards, and one for the smaller last one.
int pass_of_leaf(const Program& program, const ScheduleItem& item);

// Puts other tensors in the place of those that a segment's ops read and write.
void rename(const std::map<TensorId, TensorId>& renamed, Segment& segment);

// Adds zeros to the sums, in front of all others, so that gradients and sums together are a multiple of the replicas,
// each of which adds a part of them. Returns the elements of gradients and sums.
std::int64_t pad_sums(Program& program, int replicas);

// Appends a segment of phase exchange behind all passes.
void add_exchange(Program& program, std::vector<Op> ops);

}  // namespace trainctl
