// The backward passes of logical shards, which are the leaves of the tree in tree.h.
#pragma once

#include <map>
#include <vector>

#include "core/program/program.h"

namespace trainctl {

// Returns the number of the backward segment that writes the gradients and sums of an item's leaf. There is one segment
// for whole logical shards, and one for the smaller last shard.
int pass_of_leaf(const Program& program, const ScheduleItem& item);

// Replaces tensors that a segment's ops read and write.
void rename(const std::map<TensorId, TensorId>& renamed, Segment& segment);

// Adds zeros before the sums, so that the number of elements of gradients and sums together is a multiple of
// `replicas`, since each replica adds one shard. Returns this number.
std::int64_t pad_sums(Program& program, int replicas);

// Appends a segment of phase exchange after all passes.
void add_exchange(Program& program, std::vector<Op> ops);

}  // namespace trainctl
