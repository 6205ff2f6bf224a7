// Compares two checkpoints tensor by tensor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/backend/choice_changes.h"
#include "core/base/json_fwd.h"
#include "core/tensor/difference.h"
#include "io/checkpoint/load.h"

namespace trainctl {

// A tensor that is in one of the checkpoints or in both.
struct ComparedTensor {
  SnapshotContent content = SnapshotContent::weights;
  std::string name;
  std::optional<Shape> a, b;  // its shape in each checkpoint; empty if the checkpoint has no such tensor
  std::optional<Difference> difference = {};  // difference of the values, if both have the tensor in the same shape

  bool equal() const { return difference && difference->equal(); }
};

// The kernels of the runs that wrote the checkpoints.
struct ComparedKernels {
  std::string a, b;                    // hashes; empty if a checkpoint has none
  std::vector<ChangedChoice> changed;  // `before` is the choice in A, `now` the choice in B
};

struct CheckpointComparison {
  std::string a, b;                     // paths
  std::int64_t a_step = 0, b_step = 0;  // number of steps done at each checkpoint
  std::vector<ComparedTensor> tensors;  // weights, then the optimizer's state; each in bytewise order of names
  ComparedKernels kernels = {};

  // Whether both checkpoints have the same tensors with the same bits.
  bool equal() const;
};

// Compares all tensors of two checkpoints, and the kernels of their runs.
CheckpointComparison compare(const LoadedCheckpoint& a, const LoadedCheckpoint& b);

// {ok, a: {path, step, kernels}, b: {path, step, kernels}, changed_kernels: [{kernel, a, b}], tensors: [{name, content,
// shape, equal, elements, differing, largest_absolute, largest_relative}]}; `only_in` if only one checkpoint has the
// tensor, `other_shape` if the shapes differ.
Json to_json(const CheckpointComparison& comparison);

// Returns the kernels, a table of the tensors, and the number of tensors that differ.
std::string to_text(const CheckpointComparison& comparison);

}  // namespace trainctl
