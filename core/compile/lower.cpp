// Lowering: chooses the kernel of each op, and inserts reorders and compute copies if an op needs another layout.
#include "core/compile/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/compile/cheap_values.h"
#include "core/compile/joined_ops.h"
#include "core/compile/row_groups.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/optimizers/optimizers.h"
#include "core/graph/ops/reshaping/shaping.h"

namespace trainctl {
namespace {

class Lowerer {
 public:
  Lowerer(Program program, Kernels& kernels) : kernels_(kernels), program_(std::move(program)) {
    for (const Tensor& tensor : program_.tensors) lowered_.tensors.push_back({logical_layout(tensor.type)});
    if (program_.find(Phase::copies) < 0) program_.segments.push_back({Phase::copies, {}, {}});
    lowered_.copies_segment = program_.find(Phase::copies);
    for (const Segment& segment : program_.segments) lowered_.segments.push_back({segment.phase, segment.variant, {}});
  }

  PlacedProgram run() {
    kernels_.prepare(program_);
    std::set<int> done{lowered_.copies_segment};
    for (const bool updates : {false, true}) {  // an update writes copies, which later ops of other segments may need
      for (const ScheduleItem& item : program_.schedule) {
        const bool is_update = program_.segment(item.segment).phase == Phase::update;
        if (is_update == updates && done.insert(item.segment).second) lower_segment(item.segment);
      }
    }
    program_.segments.clear();
    lowered_.program = std::move(program_);
    return std::move(lowered_);
  }

 private:
  void lower_segment(int index) {
    segment_ = index;
    reordered_.clear();
    for (const Op& op : program_.segment(index).ops) lower_op(op);
  }

  void lower_op(Op op) {
    if (op.def->trait() != OpTrait::kernel) {
      lower_without_kernel(std::move(op));
      return;
    }
    if (!kernels_.adds_gradients() && (lower_apart<Conv2dGradInput>(op) || lower_apart<Conv3dGradInput>(op))) return;
    if (kernels_.updates_copies()) add_copies(op);
    std::vector<Layout> present;
    for (TensorId id : op.inputs) present.push_back(layout(id));
    Lowering lowering = kernels_.lower(op, program_, present);
    require(lowering.inputs.size() == op.inputs.size() && lowering.outputs.size() == op.outputs.size(),
            "lowering of " + std::string(op.def->kind()) + " does not cover its tensors");
    for (std::size_t i = 0; i < op.inputs.size(); ++i) op.inputs[i] = in_layout(op.inputs[i], lowering.inputs[i], op);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      layout(op.outputs[i]) = lowering.outputs[i];
      forget_reordered(op.outputs[i]);
    }
    append(segment_, std::move(op), std::move(lowering));
  }

  // Lowers an alias or a collective, which has no kernel and reads its inputs in logical layouts.
  void lower_without_kernel(Op op) {
    for (TensorId& input : op.inputs) input = in_layout(input, logical(input), op);
    if (op.def->output_is_input() && op.outputs[0] != op.inputs[0]) tensor(op.outputs[0]).alias_of = op.inputs[0];
    Lowering lowering;
    if (const auto* collective = op.get_if<Collective>(); collective != nullptr && !op.inputs.empty()) {
      lowering.workspace_bytes = collective->workspace_bytes({{program_.tensor(op.inputs[0]).type}});
    }
    append(segment_, std::move(op), std::move(lowering));
  }

  // Lowers an input gradient that adds to an earlier gradient as two ops: the gradient, and the addition. Returns false
  // for other ops.
  template <class Gradient>
  bool lower_apart(const Op& op) {
    const auto* gradient = op.get_if<Gradient>();
    if (gradient == nullptr || !gradient->accumulate) return false;
    Tensor summand = program_.tensor(op.outputs[0]);
    summand.name += "/part";
    const Layout logical = logical_layout(summand.type);
    const TensorId gradient_id = add(std::move(summand), logical);
    lower_op({std::make_shared<Gradient>(gradient->window, gradient->groups, gradient->input),
              {op.inputs[0], op.inputs[1]},
              {gradient_id},
              op.name,
              op.location});
    lower_op({std::make_shared<Add>(), {op.inputs[2], gradient_id}, op.outputs, op.name, op.location});
    return true;
  }

  // Adds the compute copies of the parameters to the outputs of the optimizer's op, which runs after all ops that read
  // parameters.
  void add_copies(Op& op) {
    const auto* optimizer = op.get_if<OptimizerUpdate>();
    // An update of a shard of the parameters does not write copies of whole parameters.
    if (optimizer == nullptr || program_.flat.shares(Quantity::states)) return;
    const auto def = std::make_shared<OptimizerUpdate>(*optimizer);
    const auto bucket = std::ranges::find(program_.flat.buckets, op.outputs[0], &FlatBucket::parameter);
    require(bucket != program_.flat.buckets.end(), "an update changes no bucket");
    for (ComputeCopy& copy : lowered_.copies) {
      if (is_prepared(copy.parameter)) continue;
      for (const FlatEntry& entry : program_.flat.parameters) {
        if (entry.parameter != copy.parameter || entry.gradient == no_tensor) continue;
        const std::int64_t offset = entry.offset - bucket->offset;
        if (offset < 0 || offset >= bucket->count) continue;  // another player trains it
        copy.updated = true;
        def->copies.push_back({offset, program_.tensor(copy.tensor).type.shape, layout(copy.tensor)});
        op.outputs.push_back(copy.tensor);
      }
    }
    op.def = def;
  }

  // Whether a step changes the parameter before its forward pass, after which all copies are written, and may change it
  // back.
  bool is_prepared(TensorId parameter) const {
    return std::ranges::any_of(program_.segments, [&](const Segment& segment) {
      return segment.phase == Phase::prepare && std::ranges::any_of(segment.ops, [&](const Op& op) {
               return std::ranges::find(op.outputs, parameter) != op.outputs.end();
             });
    });
  }

  // Returns the tensor, or a copy of the tensor in the required layout. The copy is made on first use.
  TensorId in_layout(TensorId id, const Layout& required, const Op& consumer) {
    if (layout(id) == required) return id;
    const Role role = program_.tensor(id).role;
    const bool is_parameter = role == Role::parameter;
    auto& known = is_parameter ? copies_ : reordered_;
    const auto key = std::make_pair(id, std::string(name_of(required.dtype)) + ":" + required.format);
    if (const auto found = known.find(key); found != known.end()) return found->second;

    Tensor copy = program_.tensor(id);
    copy.name += (is_parameter ? "/copy:" : "/reordered:") + key.second;
    copy.type.dtype = required.dtype;
    copy.role = is_parameter ? Role::copy : Role::activation;
    copy.alias_of = no_tensor;
    const TensorId target = add(std::move(copy), required);
    known.emplace(key, target);

    Op reorder{std::make_shared<Reorder>(required), {id}, {target}, consumer.name, consumer.location};
    Lowering lowering = kernels_.lower(reorder, program_, {layout(id)});
    if (is_parameter) lowered_.copies.push_back({target, id});
    append(is_parameter ? lowered_.copies_segment : segment_, std::move(reorder), std::move(lowering));
    return target;
  }

  // Forgets the reordered versions of a tensor that an op writes again.
  void forget_reordered(TensorId id) {
    std::erase_if(reordered_, [id](const auto& entry) { return entry.first.first == id; });
  }

  void append(int segment, Op op, Lowering lowering) {
    lowered_.segments[static_cast<std::size_t>(segment)].ops.push_back({std::move(op), std::move(lowering)});
  }

  TensorId add(Tensor tensor, const Layout& in) {
    program_.tensors.push_back(std::move(tensor));
    lowered_.tensors.push_back({in});
    return static_cast<TensorId>(program_.tensors.size() - 1);
  }

  Tensor& tensor(TensorId id) { return program_.tensors[index(id)]; }
  Layout& layout(TensorId id) { return lowered_.tensors[index(id)].layout; }
  Layout logical(TensorId id) const { return logical_layout(program_.tensor(id).type); }

  using Known = std::map<std::pair<TensorId, std::string>, TensorId>;

  Kernels& kernels_;
  Program program_;  // keeps its ops until all are lowered, since backends inspect the readers of an op's outputs
  PlacedProgram lowered_;
  int segment_ = 0;  // the segment that is being lowered
  Known copies_;     // compute copies of parameters, for the whole program
  Known reordered_;  // reordered activations, within one segment
};

}  // namespace

PlacedProgram lower(Program program, Kernels& kernels) {
  if (kernels.on_host()) recompute_cheap_values(program);
  for (Segment& segment : program.segments) segment.ops = join_ops(std::move(segment.ops));
  if (kernels.on_host()) group_rows(program);
  return Lowerer(std::move(program), kernels).run();
}

}  // namespace trainctl
