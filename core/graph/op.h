// Ops: the few operations that layers expand into and that kernels implement.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/tensor.h"

namespace trainctl {

struct Op;
class Differentiator;  // core/graph/graph.h

// Output `output` may take the memory of input `input` when nothing reads the input afterwards.
struct InPlace {
  int input = 0;
  int output = 0;
};

class OpDef;

// What an op is to the executor: a kernel of the backend, another name for its input's memory, or a collective.
enum class OpTrait { kernel, alias, collective };

// One of several ops that together compute what another op does. Tensors are numbered: that op's inputs, its outputs,
// and then, as they come, the outputs of parts that only later parts read.
struct OpPart {
  std::shared_ptr<const OpDef> def;
  std::vector<int> inputs, outputs;
};

// What an op is: its attributes and rules. Immutable and shared. One class per op in core/graph/ops/, whose comment
// states inputs, outputs and shapes; one kernel file of the same base name in every backend.
class OpDef {
 public:
  virtual ~OpDef() = default;

  // "conv2d": the key of kernel tables, dumps and `bench ops`.
  virtual std::string_view kind() const = 0;
  // The attributes, readable: "strides=2x2 activation=relu". Equal kind and attributes mean the same computation.
  virtual std::string attributes() const { return {}; }
  virtual OpTrait trait() const { return OpTrait::kernel; }
  // Whether the first output is another name for the first input's memory.
  virtual bool output_is_input() const { return trait() == OpTrait::alias; }
  // Shapes and dtypes of the outputs. Inputs were checked by the layer; a violation here is an internal error.
  virtual std::vector<TensorType> outputs(std::span<const TensorType> inputs) const = 0;
  // How the outputs lie on one axis of the mesh, given how the inputs lie there: what every rank's op, on its parts,
  // makes of the whole (core/graph/placement_rules.h).
  virtual OutputPlacements placements(const PlacementQuery& query) const = 0;
  // Floating-point operations, a multiply-add counting two. By default one for each element of the first output.
  virtual double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const;
  virtual std::vector<InPlace> in_place() const { return {}; }
  // The ops that compute the same one after the other, but for the order in which sums are added: for devices that have
  // no kernel for this op. By default none.
  virtual std::vector<OpPart> parts() const { return {}; }
  // Emits the ops that compute the gradients of the inputs. Ops that only stand in the backward or update part have
  // none.
  virtual void differentiate(const Op& op, Differentiator& differentiator) const;
  // Whether other ranks want the gradient by what this op brings from them, whatever this rank wants.
  virtual bool peers_want_gradient() const { return false; }
  // Whether the gradient comes back from another rank, though nothing on this one reads the outputs.
  virtual bool begins_gradient() const { return false; }
};

// An op at its place in a segment.
struct Op {
  std::shared_ptr<const OpDef> def;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  std::string name;  // the layer's path, for timelines and errors
  Place place;

  template <class Def>
  const Def& as() const {
    return static_cast<const Def&>(*def);
  }
  // Null where it is another op.
  template <class Def>
  const Def* get_if() const {
    return dynamic_cast<const Def*>(def.get());
  }
};

}  // namespace trainctl
