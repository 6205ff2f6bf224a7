// Ops: the few operations that layers expand into and that kernels implement.
#pragma once

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

// Output `output` may take the memory of input `input` when no later op reads the input.
struct InPlace {
  int input = 0;
  int output = 0;
};

class OpDef;

// How the executor runs an op: a kernel of the backend, nothing (an alias of its input's memory), or a collective.
enum class OpTrait { kernel, alias, collective };

// One of several ops that together compute the same as another op. Tensors are numbered: the inputs of that op, its
// outputs, then, in order of appearance, outputs of parts that only later parts read.
struct SubOp {
  std::shared_ptr<const OpDef> def;
  std::vector<int> inputs, outputs;
};

// The ranks among which the operands of an op are divided in equal parts, and the number of the one whose part is
// meant.
struct ShardPosition {
  int count = 1;
  int index = 0;
};

// The definition of an op: its attributes and rules, immutable and shared. core/graph/ops/ has one class for each op,
// whose comment states inputs, outputs and shapes; every backend has a kernel file of the same base name.
class OpDef {
 public:
  virtual ~OpDef() = default;

  // "conv2d": the key of kernel tables, dumps and `bench ops`.
  virtual std::string_view kind() const = 0;
  // The attributes as text: "strides=2x2 activation=relu". Ops of equal kind and attributes compute the same.
  virtual std::string attributes() const { return {}; }
  virtual OpTrait trait() const { return OpTrait::kernel; }
  // Whether the first output is an alias of the first input.
  virtual bool output_is_input() const { return trait() == OpTrait::alias; }
  // The shapes and dtypes of the outputs. Layers check the inputs: wrong ones are an internal error here.
  virtual std::vector<TensorType> outputs(std::span<const TensorType> inputs) const = 0;
  // The placements of the outputs on one axis of the mesh, given those of the inputs, where every rank runs the op on
  // its parts (core/graph/placement_rules.h).
  virtual OutputPlacements placements(const PlacementQuery& query) const = 0;
  // What the op is on one rank's part of its inputs, whose whole types are `inputs`; `split` holds the dimension along
  // which the ranks divide each input, nothing for whole ones. Null, the default: it is the same op, if its placement
  // rule lets it work on such parts.
  virtual std::shared_ptr<const OpDef> on_shard(std::span<const TensorType> inputs,
                                                std::span<const std::optional<int>> split,
                                                const ShardPosition& ranks) const;
  // The number of an input, the last one, that is added to the output along its last dimension (a bias) and that the op
  // can do without: of a sum over ranks it is added once, to the sum. -1, the default: there is no such input.
  virtual int bias() const { return -1; }
  // Floating-point operations, a multiply-add counting two. By default one for each element of the first output.
  virtual double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const;
  // How often kernels read input number `input` from memory: an op whose result depends on sums over a large input
  // reads it once for the sums and once more.
  virtual int reads([[maybe_unused]] std::size_t input) const { return 1; }
  virtual std::vector<InPlace> in_place() const { return {}; }
  // Simpler ops that, run in order, compute the same apart from the order in which sums are added; used by devices that
  // have no kernel for this op. By default none.
  virtual std::vector<SubOp> decomposition() const { return {}; }
  // The op that computes what this op and `reader` compute together, where the reader takes this op's first output as
  // input number `operand` and no other op reads it; nothing if there is no such op. By default none.
  virtual std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const;
  // Whether kernels may turn a NaN of the inputs into a number, as a library's matrix product with a fused relu does.
  virtual bool may_hide_nan() const { return false; }
  // Emits the ops that compute the gradients of the inputs. Ops of the backward pass and the update cannot be
  // differentiated: an internal error.
  virtual void differentiate(const Op& op, Differentiator& differentiator) const;
  // Whether the op receives from other ranks that need its gradient even where this rank does not.
  virtual bool peers_want_gradient() const { return false; }
  // Whether the op's gradient comes from another rank, so that it exists where no op on this rank reads the outputs.
  virtual bool begins_gradient() const { return false; }
};

// An op at its place in a segment.
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
  // The definition as a Def; null where it is of another class.
  template <class Def>
  const Def* get_if() const {
    return dynamic_cast<const Def*>(def.get());
  }
};

}  // namespace trainctl
