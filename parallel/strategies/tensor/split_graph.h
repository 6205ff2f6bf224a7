// A rank's part of a graph while it is made: for each tensor of the graph the forms in which the rank has it, and the
// ops that make one form from another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "parallel/strategies/pipeline/stages.h"
#include "parallel/strategies/tensor/split_groups.h"

namespace trainctl {

class SplitGraph {
 public:
  // `stages`: of a pipeline that the graph will be cut into. All that is referred to outlives the object.
  SplitGraph(const Graph& graph, const ShardPosition& ranks, const Stages& stages);

  // The dimension along which the ranks have parts of the tensor; nothing if each has it whole.
  std::optional<int> split_of(TensorId id) const { return forms(id).dimension; }
  // The group of layers that the tensor's parts, or its readers, join; -1: none yet.
  int group_of(TensorId id) const { return forms(id).group; }
  SplitGroups& groups() { return groups_; }

  // The tensor as all ranks have it; it is gathered if each has a part.
  TensorId whole(TensorId id);
  // The whole tensor as an input of the op `reader`, whose output each rank computes a part of. In the backward pass
  // the ranks' gradients of the tensor are added up.
  TensorId shared(TensorId id, const Op& reader);
  // This rank's part along the dimension: the part that the rank has, or that of a parameter or running statistic, or
  // one taken from the whole.
  TensorId part(TensorId id, int dimension, const Op& reader);

  // Appends an op that stands for `like`, an op of the graph. Its outputs have the names of that op's outputs, with
  // `suffix` appended.
  std::vector<TensorId> emit(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs, const Op& like,
                             const std::string& suffix = "");
  // States that `made` is the tensor `id` of the graph, whole, or in parts along the dimension.
  void set_whole(TensorId id, TensorId made) { forms(id).whole = made; }
  void set_part(TensorId id, TensorId made, int dimension);
  void set_group(TensorId id, int group) { forms(id).group = group; }

  // The whole part: call it once all ops are emitted. Outputs stay in parts along the last dimension: what follows
  // takes them so, or gathers them, as is assumed here.
  Graph finish();

 private:
  struct Forms {
    TensorId whole = no_tensor;    // equal on all ranks
    TensorId shared = no_tensor;   // the same as the input of ops of which each rank computes a part
    int shared_in = 0;             // the stage of these ops
    TensorId part = no_tensor;     // this rank's part,
    std::optional<int> dimension;  // along this dimension
    int group = -1;
  };

  Forms& forms(TensorId id) { return forms_[static_cast<std::size_t>(id)]; }
  const Forms& forms(TensorId id) const { return forms_[static_cast<std::size_t>(id)]; }
  // Counts the values of the tensor among those that the ranks exchange on account of its group.
  void count_exchange(TensorId id);
  TensorId output(TensorId id);
  TensorId reshaped(TensorId made, Shape shape, const Op& like);
  TensorId parameter_part(TensorId id, int dimension);
  // The form of the tensor in the part, whatever it is.
  TensorId present(TensorId id) { return forms(id).dimension ? forms(id).part : whole(id); }
  int stage_of(const Op& op) const;
  const Op& maker_of(TensorId id) const;

  const Graph& from_;
  const ShardPosition ranks_;
  const Stages& stages_;
  Graph to_;
  std::vector<Forms> forms_;  // by tensor of the graph
  SplitGroups groups_;
};

}  // namespace trainctl
