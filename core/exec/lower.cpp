// Lowering: asks the backend for each op, and joins what does not fit by reorders and compute copies.
#include "core/exec/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/graph/ops/activations.h"
#include "core/graph/ops/linear.h"
#include "core/graph/ops/shaping.h"
#include "core/graph/ops/update.h"

namespace trainctl {
namespace {

class Lowerer {
 public:
  Lowerer(Program program, Backend& backend, KernelChoices& choices) : backend_(backend), choices_(choices) {
    lowered_.program = std::move(program);
    for (const Tensor& tensor : lowered_.program.tensors) lowered_.layouts.push_back(logical_layout(tensor.type));
    auto& segments = lowered_.program.segments;
    if (lowered_.program.find(Phase::copies) < 0) segments.push_back({Phase::copies, {}, {}});
    lowered_.copies_segment = lowered_.program.find(Phase::copies);
    lowered_.lowerings.resize(segments.size());
  }

  LoweredProgram run() {
    backend_.prepare(lowered_.program, choices_);
    std::set<int> done;
    for (const ScheduleItem& item : lowered_.program.schedule) {
      const bool copies = item.segment == lowered_.copies_segment;
      if (!copies && done.insert(item.segment).second) lower_segment(item.segment);
    }
    return std::move(lowered_);
  }

 private:
  void lower_segment(int index) {
    segment_ = index;
    reordered_.clear();
    made_.clear();
    // Until all of its ops are lowered the segment keeps them: a backend looks at what reads an op's outputs.
    std::vector<Op>& ops = lowered_.program.segments[static_cast<std::size_t>(index)].ops;
    for (const Op& op : ops) lower_op(op);
    ops = std::move(made_);
  }

  void lower_op(Op op) {
    if (op.def->trait() != OpTrait::kernel) {
      if (op.def->trait() == OpTrait::alias) op.inputs[0] = in_layout(op.inputs[0], logical(op.inputs[0]), op);
      append(segment_, std::move(op), {});
      return;
    }
    if (const auto* gradient = op.get_if<Conv2dGradInput>();
        gradient != nullptr && gradient->accumulate && !backend_.adds_gradients()) {
      return lower_apart(*gradient, op);
    }
    if (backend_.updates_copies()) add_copies(op);
    std::vector<Layout> present;
    for (TensorId id : op.inputs) present.push_back(layout(id));
    Lowering lowering = backend_.lower(op, lowered_.program, present, choices_);
    require(lowering.inputs.size() == op.inputs.size() && lowering.outputs.size() == op.outputs.size(),
            "lowering of " + std::string(op.def->kind()) + " does not cover its tensors");
    for (std::size_t i = 0; i < op.inputs.size(); ++i) op.inputs[i] = in_layout(op.inputs[i], lowering.inputs[i], op);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      layout(op.outputs[i]) = lowering.outputs[i];
      forget_reordered(op.outputs[i]);
    }
    append(segment_, std::move(op), std::move(lowering));
  }

  // A gradient that adds to another one, as two ops.
  void lower_apart(const Conv2dGradInput& gradient, const Op& op) {
    Tensor part = lowered_.program.tensor(op.outputs[0]);
    part.name += "/part";
    lowered_.layouts.push_back(logical_layout(part.type));
    lowered_.program.tensors.push_back(std::move(part));
    const auto made = static_cast<TensorId>(lowered_.program.tensors.size() - 1);
    lower_op({std::make_shared<Conv2dGradInput>(gradient.window, gradient.groups, gradient.input),
              {op.inputs[0], op.inputs[1]},
              {made},
              op.name,
              op.place});
    lower_op({std::make_shared<Add>(), {op.inputs[2], made}, op.outputs, op.name, op.place});
  }

  // An optimizer, which comes behind all that read parameters, gets their copies as further outputs.
  void add_copies(Op& op) {
    const auto* optimizer = op.get_if<OptimizerUpdate>();
    if (optimizer == nullptr) return;
    const auto def = optimizer->clone();
    for (ComputeCopy& copy : lowered_.copies) {
      for (const FlatEntry& entry : lowered_.program.flat.parameters) {
        if (entry.parameter != copy.parameter || entry.gradient == no_tensor) continue;
        copy.updated = true;
        def->copies.push_back({entry.offset, lowered_.program.tensor(copy.tensor).type.shape, layout(copy.tensor)});
        op.outputs.push_back(copy.tensor);
      }
    }
    op.def = def;
  }

  // The tensor, or a copy of it in the wanted layout.
  TensorId in_layout(TensorId id, const Layout& wanted, const Op& consumer) {
    if (layout(id) == wanted) return id;
    const Role role = lowered_.program.tensor(id).role;
    const bool is_parameter = role == Role::parameter;
    auto& known = is_parameter ? copies_ : reordered_;
    const auto key = std::make_pair(id, std::string(name_of(wanted.dtype)) + ":" + wanted.format);
    if (const auto found = known.find(key); found != known.end()) return found->second;

    Tensor copy = lowered_.program.tensor(id);
    copy.name += (is_parameter ? "/copy:" : "/reordered:") + key.second;
    copy.type.dtype = wanted.dtype;
    copy.role = is_parameter ? Role::copy : Role::activation;
    copy.alias_of = no_tensor;
    lowered_.program.tensors.push_back(std::move(copy));
    lowered_.layouts.push_back(wanted);
    const auto target = static_cast<TensorId>(lowered_.program.tensors.size() - 1);
    known.emplace(key, target);

    Op reorder{std::make_shared<Reorder>(wanted), {id}, {target}, consumer.name, consumer.place};
    Lowering lowering = backend_.lower(reorder, lowered_.program, {layout(id)}, choices_);
    if (is_parameter) lowered_.copies.push_back({target, id});
    append(is_parameter ? lowered_.copies_segment : segment_, std::move(reorder), std::move(lowering));
    return target;
  }

  // A tensor that is written again invalidates its reordered versions.
  void forget_reordered(TensorId id) {
    std::erase_if(reordered_, [id](const auto& entry) { return entry.first.first == id; });
  }

  void append(int segment, Op op, Lowering lowering) {
    const auto at = static_cast<std::size_t>(segment);
    auto& ops = segment == segment_ ? made_ : lowered_.program.segments[at].ops;
    ops.push_back(std::move(op));
    lowered_.lowerings[at].push_back(std::move(lowering));
  }

  Layout& layout(TensorId id) { return lowered_.layouts[static_cast<std::size_t>(id)]; }
  Layout logical(TensorId id) const { return logical_layout(lowered_.program.tensor(id).type); }

  using Known = std::map<std::pair<TensorId, std::string>, TensorId>;

  Backend& backend_;
  KernelChoices& choices_;
  LoweredProgram lowered_;
  int segment_ = 0;       // that is being lowered
  std::vector<Op> made_;  // of it
  Known copies_;          // of parameters, for the whole program
  Known reordered_;       // of activations, within one segment
};

}  // namespace

LoweredProgram lower(Program program, Backend& backend, KernelChoices& choices) {
  return Lowerer(std::move(program), backend, choices).run();
}

}  // namespace trainctl
