// The tensors within another tensor's memory: the members of a bucket, of a flat region, or of a tensor with a bucket's
// layout, such as a rank's shard of the bucket.
#pragma once

#include <set>
#include <vector>

#include "core/program/program.h"

namespace trainctl {

class Members {
 public:
  // Finds the members of the program's buckets and regions and, if replicas share the layout, of the rank's shards of
  // parameters and optimizer states. A shard's members are not tensors of the program: each has the type and the
  // placements of its parameter, but on the data axis the placement of the shard.
  explicit Members(const Program& program);

  // Empty if the tensor has no members.
  const std::vector<TensorId>& of(TensorId id) const { return members_[index(id)]; }
  // Whether the tensor has members and is none of the program's flat regions, or a player's part of them.
  bool is_bucket(TensorId id) const { return !is_region(id) && !of(id).empty(); }
  bool is_region(TensorId id) const {
    return id == program_.step.gradients || id == program_.step.parameters || of_players_.contains(id);
  }

  // Returns a tensor of the program, or a member that was made for another tensor; ids are below count().
  const Tensor& tensor(TensorId id) const;
  std::size_t count() const { return members_.size(); }

  // Makes members, without placements, for a tensor that has the layout of the bucket `like`.
  void add_like(TensorId tensor_id, TensorId like);

 private:
  void add(TensorId tensor_id, Tensor member);

  const Program& program_;
  std::vector<std::vector<TensorId>> members_;  // the members of each tensor
  std::set<TensorId> of_players_;               // the regions of a player's gradients and parameters
  std::vector<Tensor> made_;  // members that were made; their ids follow the ids of the program's tensors
};

}  // namespace trainctl
