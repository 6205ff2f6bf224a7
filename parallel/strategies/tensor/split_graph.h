// Builds a rank's shard of a graph. Keeps for each tensor of the graph its versions on the rank (whole or a shard), and
// emits the ops that convert one version to another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/ops/collectives.h"
#include "parallel/strategies/pipeline/stages.h"
#include "parallel/strategies/tensor/split_groups.h"

namespace trainctl {

class SplitGraph {
 public:
  // `stages`: the pipeline stages into which the graph will be cut. `by_positions`: whether sums over the ranks are
  // split along their positions (sequence parallelism). All arguments must outlive the object.
  SplitGraph(const Graph& graph, const ShardPosition& ranks, const Stages& stages, bool by_positions);

  // Returns the dimension along which the tensor is split; empty if each rank has the whole tensor.
  std::optional<int> split_of(TensorId id) const { return versions(id).dimension; }
  // Returns the group of layers that the split tensor, or its readers, belong to; -1 before the group is known.
  int group_of(TensorId id) const { return versions(id).group; }
  // Whether the tensor is split along its positions by a sum, or computed from such tensors alone.
  bool is_by_positions(TensorId id) const { return versions(id).by_positions; }
  SplitGroups& groups() { return groups_; }

  // Returns the whole tensor, which is gathered if it is split.
  TensorId whole(TensorId id);
  // Returns the whole tensor as an input of the op `reader`; each rank computes a shard of that op's output. In the
  // backward pass the ranks' gradients of the tensor are added.
  TensorId shared(TensorId id, const Op& reader);
  // Returns the whole parameter as an input of the op `reader`, which each rank runs on its positions. In the backward
  // pass the ranks' gradients of the parameter are added.
  TensorId shared_parameter(TensorId id, const Op& reader);
  // Returns this rank's shard of the tensor along the dimension: the existing shard, the shard of a parameter or
  // running statistic, or a slice of the whole tensor.
  TensorId shard(TensorId id, int dimension, const Op& reader);
  // Returns the sum over the ranks of `summand`, which implements the output of `like`: the whole sum, or this rank's
  // positions of it.
  TensorId sum(TensorId summand, const Op& like, const std::string& suffix);
  // Whether sum() returns this rank's positions for the tensor of the graph.
  bool scatters(TensorId id) const;

  // Appends an op that implements `like`, an op of the graph. Its outputs have the names of the outputs of `like`,
  // followed by `suffix`.
  std::vector<TensorId> emit(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs, const Op& like,
                             const std::string& suffix = "");
  // Set `made` as the whole tensor for `id`, a tensor of the graph, or as this rank's shard of `id` along the
  // dimension.
  void set_whole(TensorId id, TensorId made) { versions(id).whole = made; }
  void set_shard(TensorId id, TensorId made, int dimension, bool by_positions = false);
  void set_group(TensorId id, int group) { versions(id).group = group; }

  // Returns the rank's graph, after all ops have been emitted. Outputs that are split along the last dimension stay
  // split: their readers accept shards or gather them. The exchange is counted as if all readers gathered them.
  Graph finish();

 private:
  struct Versions {
    TensorId whole = no_tensor;    // the whole tensor, equal on all ranks
    TensorId shared = no_tensor;   // the same tensor as an input of ops that compute shards
    int shared_in = 0;             // the stage of these ops
    TensorId shard = no_tensor;    // this rank's shard
    std::optional<int> dimension;  // dimension along which the tensor is split
    bool by_positions = false;     // SplitGraph::is_by_positions()
    int group = -1;
  };

  Versions& versions(TensorId id) { return versions_[index(id)]; }
  const Versions& versions(TensorId id) const { return versions_[index(id)]; }
  // Adds the number of the tensor's values to SplitGroup::exchanged of its group.
  void count_exchange(TensorId id);
  // Gathers the shards of the tensor. `reader`: the op for which they are gathered.
  TensorId gathered(TensorId id, GatheredUse use, const Op& reader);
  TensorId output(TensorId id);
  // Reshapes a tensor that is or becomes split along `dimension`, which both shapes have.
  TensorId reshaped(TensorId made, Shape shape, int dimension, const Op& like);
  // The shape of a rank's shard of the tensor.
  Shape divided(Shape shape, int dimension) const;
  TensorShard shard_of(const Shape& whole, int dimension) const;
  TensorId parameter_shard(TensorId id, int dimension);
  // Returns the version of the tensor that exists: its shard, or else the whole tensor.
  TensorId present(TensorId id) { return versions(id).dimension ? versions(id).shard : whole(id); }
  int stage_of(const Op& op) const;
  const Op& maker_of(TensorId id) const;

  const Graph& from_;
  const ShardPosition ranks_;
  const Stages& stages_;
  const bool by_positions_;
  Graph to_;
  std::vector<Versions> versions_;  // versions of each tensor of the graph
  SplitGroups groups_;
};

}  // namespace trainctl
