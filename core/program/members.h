// The tensors that lie within another tensor's memory: the members of a bucket or of a flat region, and those of what
// has a bucket's layout, such as a rank's part of it.
#pragma once

#include <vector>

#include "core/program/program.h"

namespace trainctl {

class Members {
 public:
  // Of the program's buckets and regions, and of the parts of parameters and optimizer states that a rank holds where
  // the layout is shared. A part's members are no tensors of the program: each has the type of its parameter, and is
  // placed as the parameter is, on the data axis as the part.
  explicit Members(const Program& program);

  // Empty where nothing lies in the tensor.
  const std::vector<TensorId>& of(TensorId id) const { return members_[static_cast<std::size_t>(id)]; }
  // Whether the tensor has members and is none of the program's flat regions.
  bool is_bucket(TensorId id) const { return !is_region(id) && !of(id).empty(); }
  bool is_region(TensorId id) const { return id == program_.step.gradients || id == program_.step.parameters; }

  // A tensor of the program, or a member that was made for a part; ids are below count().
  const Tensor& tensor(TensorId id) const;
  std::size_t count() const { return members_.size(); }

  // Makes members for a tensor that lies as the bucket `like` does, without placements.
  void add_like(TensorId part, TensorId like);

 private:
  void add(TensorId part, Tensor member);

  const Program& program_;
  std::vector<std::vector<TensorId>> members_;  // by tensor
  std::vector<Tensor> made_;                    // whose ids follow those of the program's tensors
};

}  // namespace trainctl
