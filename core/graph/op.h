// Ops: the operations on tensors that layers expand into and that kernels implement.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/tensor.h"

namespace trainctl {

struct Op;
class Differentiator;  // core/graph/differentiator.h

// Output `output` may use the memory of input `input` if no later op reads the input.
struct InPlace {
  int input = 0;
  int output = 0;
};

class OpDef;

// How the executor runs an op: by a kernel of the backend, not at all (the output is an alias of the input's memory),
// or as a collective.
enum class OpTrait { kernel, alias, collective };

// One op of a decomposition, a list of ops that together compute the same as another op. Tensors are numbered: first
// the inputs of that op, then its outputs, then the intermediate results in order of appearance.
struct SubOp {
  std::shared_ptr<const OpDef> def;
  std::vector<int> inputs, outputs;
};

// The position of a shard: the number of ranks among which the tensors of an op are divided into shards, and the index
// of the shard's rank. If the number of ranks does not divide a dimension, the first ranks have one element more.
struct ShardPosition {
  int count = 1;
  int index = 0;

  // The number of elements of this rank's shard of a dimension with `size` elements, and the index of the first one.
  std::int64_t size_of(std::int64_t size) const { return size / count + (index < size % count ? 1 : 0); }
  std::int64_t first_of(std::int64_t size) const {
    return size / count * index + std::min<std::int64_t>(index, size % count);
  }
};

// The definition of an op: its attributes and rules. It is immutable and shared. core/graph/ops/ has one class for each
// op, with a comment that lists inputs, outputs and shapes; every backend has a kernel file with the same base name. In
// these comments "y, like x" means that y has the shape and dtype of x, "in place" that an output may use the memory of
// an input (in_place()), and "(+)=" that the op adds to its output if it accumulates.
class OpDef {
 public:
  virtual ~OpDef() = default;

  // The kind of the op, such as "conv2d": the key of kernel tables, dumps and `bench ops`.
  virtual std::string_view kind() const = 0;
  // The attributes as text, such as "strides=2x2 activation=relu". Ops with equal kind and attributes compute the same.
  virtual std::string attributes() const { return {}; }
  virtual OpTrait trait() const { return OpTrait::kernel; }
  // Whether the first output is an alias of the first input.
  virtual bool output_is_input() const { return trait() == OpTrait::alias; }
  // The shapes and dtypes of the outputs. Layers check the inputs before; wrong inputs are an internal error here.
  virtual std::vector<TensorType> outputs(std::span<const TensorType> inputs) const = 0;
  // The placements of the outputs along one axis of the mesh, for given placements of the inputs, if every rank runs
  // the op on its shards of the inputs (core/graph/placement_rules.h).
  virtual OutputPlacements placements(const PlacementQuery& query) const = 0;
  // The op that computes one rank's shard of the result. `inputs` are the types of the whole inputs; `split` is the
  // dimension along which each input is split among the ranks, empty for whole inputs. Null (the default) means that
  // this op also computes the shard, provided that its placement rule permits such shards.
  virtual std::shared_ptr<const OpDef> on_shard(std::span<const TensorType> inputs,
                                                std::span<const std::optional<int>> split,
                                                const ShardPosition& ranks) const;
  // The index of the bias: an optional last input that is added to the output along the last dimension. If the outputs
  // of several ranks are summed, the bias is added once, to the sum. -1 (the default): the op has no bias.
  virtual int bias() const { return -1; }
  // The number of floating-point operations; a multiply-add counts as two. By default, one operation for each element
  // of the first output.
  virtual double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const;
  // How often kernels read input number `input` from memory, and write the outputs. For example, an op that first
  // computes sums over a large input reads it twice, and one that looks up rows of a table reads a fraction of it.
  virtual double reads([[maybe_unused]] std::size_t input, [[maybe_unused]] std::span<const TensorType> inputs) const {
    return 1;
  }
  virtual double writes([[maybe_unused]] std::span<const TensorType> inputs) const { return 1; }
  virtual std::vector<InPlace> in_place() const { return {}; }
  // Simpler ops that compute the same result when run in order, except for the order of additions in sums. Devices
  // without a kernel for this op use them. By default none.
  virtual std::vector<SubOp> decomposition() const { return {}; }
  // Returns the fused op that computes `op`, which has this definition, and then `reader`; empty (the default) if there
  // is none. `reader` is the only op that reads the first output of `op`: it is input number `operand` of `reader`.
  virtual std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const;
  // Returns the op that computes `writer` and then `op`, which has this definition; empty (the default) if there is
  // none. It has the outputs of both ops, which have the same bits as those of the two ops. The first input of `op` is
  // the output of `writer`, which other ops may also read. Joined ops exist only in compiled programs (join_ops()).
  virtual std::optional<Op> joined_with(const Op& op, const Op& writer) const;
  // Whether kernels may turn a NaN in the inputs into a number, as the matrix product with a fused relu does in some
  // libraries.
  virtual bool may_hide_nan() const { return false; }
  // Emits the ops that compute the gradients of the inputs. Throws an internal error for ops that have no gradient,
  // such as ops of the backward pass and the update.
  virtual void differentiate(const Op& op, Differentiator& differentiator) const;
  // Whether the op receives data from other ranks that need its gradient, even if this rank does not need it.
  virtual bool peers_need_gradient() const { return false; }
  // Whether the op's gradients exist even if no op on this rank reads its output: the output's gradient comes from
  // another rank, or the op computes a loss.
  virtual bool begins_gradient() const { return false; }
};

// An op of a graph or program: a definition applied to tensors.
struct Op {
  std::shared_ptr<const OpDef> def;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  std::string name;  // the layer's path, for timelines and errors
  SourceLocation location;

  template <class Def>
  const Def& as() const {
    return static_cast<const Def&>(*def);
  }
  // The definition as a Def; nullptr if the definition belongs to another class.
  template <class Def>
  const Def* get_if() const {
    return dynamic_cast<const Def*>(def.get());
  }
};

}  // namespace trainctl
