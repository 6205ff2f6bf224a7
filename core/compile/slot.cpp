// Finds the lifetimes of a slot's tensors and workspaces, and their offsets in one arena.
#include "core/compile/slot.h"

#include <algorithm>
#include <map>

#include "core/base/checked.h"
#include "core/compile/liveness.h"
#include "core/compile/step_inputs.h"
#include "core/graph/ops/collectives.h"

namespace trainctl {
namespace {

bool is_in_slot(const Tensor& tensor) { return tensor.role == Role::activation || tensor.role == Role::input; }

// Whether an op needs a moment of its own in the timeline, because it uses memory of the slot.
bool takes_moment(const Program& program, const PlacedOp& placed) {
  const Op& op = placed.op;
  if (op.def->trait() == OpTrait::alias) return false;
  if (op.def->trait() == OpTrait::kernel && placed.lowering.workspace_bytes > 0) return true;
  const auto in_slot = [&](TensorId id) { return is_in_slot(program.tensor(id)); };
  return std::any_of(op.inputs.begin(), op.inputs.end(), in_slot) ||
         std::any_of(op.outputs.begin(), op.outputs.end(), in_slot);
}

// Numbers the ops of one slot in the order of time (moments). Variants of the backward segment share their moments,
// since only one variant runs for a micro-batch. Ops that only use flat regions get no moment, since the number of
// these ops differs between variants. The passes of the micro-batch of rest_samples, which come last, have moments of
// their own. Moment 0 is the arrival of the batch, before the first op.
class Timeline {
 public:
  explicit Timeline(const PlacedProgram& placed) {
    const auto& segments = placed.segments;
    moments_.resize(segments.size());
    int next = 1;
    int backward_start = -1;
    const int first_of_rest = first_segment_of_rest(placed.program);
    for (int s : order(placed)) {
      const PlacedSegment& segment = segments[static_cast<std::size_t>(s)];
      if (s == first_of_rest) rest_arrival_ = next++;
      if (segment.variant == Variant::empty) {  // writes the tensors that otherwise arrive with the batch
        moments_[static_cast<std::size_t>(s)].assign(segment.ops.size(), 0);
        continue;
      }
      const bool variant = segment.phase == Phase::backward;
      if (!variant) backward_start = -1;
      if (variant && backward_start < 0) backward_start = next;
      int moment = variant ? backward_start : next;
      for (const PlacedOp& placed_op : segment.ops) {
        moments_[static_cast<std::size_t>(s)].push_back(moment);
        if (takes_moment(placed.program, placed_op)) ++moment;
      }
      next = std::max(next, moment);
    }
    end_ = next;
  }

  int moment(std::size_t segment, std::size_t op) const { return moments_[segment][op]; }
  int end() const { return end_; }
  // The moment at which the micro-batch of rest_samples arrives.
  int rest_arrival() const { return rest_arrival_; }

 private:
  static int first_segment_of_rest(const Program& program) {
    const auto first = std::find_if(program.schedule.begin(), program.schedule.end(),
                                    [&](const ScheduleItem& item) { return program.is_rest(item); });
    return first == program.schedule.end() ? -1 : first->segment;
  }

  // Segments in the order in which a micro-batch first runs them, with all variants of the backward segment together;
  // then the segments of the smaller micro-batch, which a pipeline may run between the others but in another slot; then
  // the update, and the copies segment, which may run on its own. With players, segments run in the order of the
  // schedule.
  static std::vector<int> order(const PlacedProgram& placed) {
    const auto is_backward = [&](int s) { return placed.segment(s).phase == Phase::backward; };
    std::vector<int> order;
    const auto add = [&order](int s) {
      if (std::find(order.begin(), order.end(), s) == order.end()) order.push_back(s);
    };
    const auto is_update = [&](int s) { return placed.segment(s).phase == Phase::update; };
    for (const bool rest : {false, true}) {
      if (!placed.program.step.players.empty()) break;
      const auto add_all = [&](auto counts) {
        for (const ScheduleItem& item : placed.program.schedule) {
          if (placed.program.is_rest(item) == rest && counts(item.segment)) add(item.segment);
        }
      };
      add_all([&](int s) {
        if (is_backward(s)) add_all(is_backward);
        return !is_update(s);
      });
    }
    for (const ScheduleItem& item : placed.program.schedule) add(item.segment);
    add(placed.copies_segment);
    return order;
  }

  std::vector<std::vector<int>> moments_;
  int end_ = 0;
  int rest_arrival_ = 0;
};

// Finds the lifetimes of the tensors and workspaces of one program's slot.
class SlotPlanner {
 public:
  explicit SlotPlanner(PlacedProgram& placed)
      : placed_(placed), timeline_(placed), lifetime_of_(placed.tensors.size(), -1) {}

  std::int64_t plan() {
    arrive_inputs();
    for_each_op([this](std::size_t s, std::size_t o, const Op& op) { touch(op, timeline_.moment(s, o)); });
    keep_predictions();
    keep_while_communicating();
    for_each_op([this](std::size_t s, std::size_t o, const Op& op) { reuse(op, timeline_.moment(s, o)); });
    for_each_op([this](std::size_t s, std::size_t o, const Op&) { add_workspace(s, o); });
    const ArenaPlan arena = plan_arena(lifetimes_, allocation_alignment);
    write_offsets(arena);
    return arena.bytes;
  }

 private:
  template <class Visit>
  void for_each_op(Visit visit) {
    const auto& segments = placed_.segments;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      for (std::size_t o = 0; o < segments[s].ops.size(); ++o) visit(s, o, segments[s].ops[o].op);
    }
  }

  // The tensor that owns the memory of the tensor `id`: itself or the tensor that it aliases; no_tensor if it is not in
  // the slot.
  TensorId owner(TensorId id) const {
    while (id != no_tensor && placed_.program.tensor(id).alias_of != no_tensor)
      id = placed_.program.tensor(id).alias_of;
    if (id == no_tensor) return no_tensor;
    return is_in_slot(placed_.program.tensor(id)) ? id : no_tensor;
  }

  // The offset of the tensor in its owner's memory, in bytes.
  std::int64_t offset_in_owner(TensorId id) const {
    std::int64_t bytes = 0;
    for (; placed_.program.tensor(id).alias_of != no_tensor; id = placed_.program.tensor(id).alias_of) {
      bytes += placed_.program.tensor(id).alias_offset * size_of(placed_.program.tensor(id).type.dtype);
    }
    return bytes;
  }

  Lifetime& lifetime(TensorId id) { return lifetimes_[static_cast<std::size_t>(index(id))]; }
  int& index(TensorId id) { return lifetime_of_[static_cast<std::size_t>(id)]; }

  void live_at(TensorId tensor, int moment) {
    const TensorId id = owner(tensor);
    if (id == no_tensor) return;
    if (index(id) < 0) {
      index(id) = static_cast<int>(lifetimes_.size());
      lifetimes_.push_back({placed_.tensor(id).layout.bytes, moment, moment, -1});
    }
    lifetime(id).first = std::min(lifetime(id).first, moment);
    lifetime(id).last = std::max(lifetime(id).last, moment);
  }

  void arrive_inputs() {
    const auto arrive = [this](const BatchTensors& batch, int moment) {
      for (std::size_t number = 1; number < source_count(batch); ++number) live_at(part_at(batch, number), moment);
    };
    arrive(placed_.program.batch, 0);
    arrive(placed_.program.rest, timeline_.rest_arrival());
  }

  void touch(const Op& op, int moment) {
    for (TensorId id : op.inputs) live_at(id, moment);
    for (TensorId id : op.outputs) live_at(id, moment);
  }

  // Keeps the memory of the predictions until the end of the program, since the host reads them after an evaluation.
  void keep_predictions() {
    const Program& program = placed_.program;
    if (program.step.learning_rate != no_tensor) return;
    for (TensorId predictions : program.step.predictions) live_at(predictions, timeline_.end());
  }

  // Keeps the memory of the inputs of an asynchronous collective until the Wait for its output, unless the collective
  // works in place on a copy.
  void keep_while_communicating() {
    std::map<TensorId, const Op*> running;
    for_each_op([&](std::size_t s, std::size_t o, const Op& op) {
      if (const auto* collective = op.get_if<Collective>(); collective != nullptr && collective->asynchronous) {
        running[op.outputs[0]] = &op;
        started_at_[op.outputs[0]] = timeline_.moment(s, o);
      } else if (op.get_if<Wait>() != nullptr && running.contains(op.inputs[0])) {
        const Op& begun = *running[op.inputs[0]];
        const int moment = timeline_.moment(s, o);
        waited_at_[started_at_[op.inputs[0]]] = moment;
        if (!begun.def->in_place().empty()) return;
        for (TensorId id : begun.inputs) live_at(id, moment);
      }
    });
  }

  // Lets an output take over the memory of an input if the input's lifetime ends here, the op allows it, and the
  // layouts are equal.
  void reuse(const Op& op, int moment) {
    for (const InPlace& pair : op.def->in_place()) {
      const TensorId from = owner(op.inputs[static_cast<std::size_t>(pair.input)]);
      const TensorId to = owner(op.outputs[static_cast<std::size_t>(pair.output)]);
      if (from == no_tensor || to == no_tensor || from == to || lifetime(to).continues >= 0) continue;
      const bool alike =
          placed_.tensor(from).layout == placed_.tensor(to).layout && lifetime(from).bytes == lifetime(to).bytes;
      const bool read_once =
          std::count_if(op.inputs.begin(), op.inputs.end(), [&](TensorId id) { return owner(id) == from; }) == 1;
      if (!alike || !read_once || lifetime(from).last != moment || lifetime(to).first != moment || continued_[from])
        continue;
      lifetime(to).continues = index(from);
      continued_[from] = true;
    }
  }

  // Adds the workspace of an op. Ops of different variants that have the same moment share a workspace.
  void add_workspace(std::size_t segment, std::size_t op) {
    const std::int64_t bytes = placed_.segments[segment].ops[op].lowering.workspace_bytes;
    if (bytes == 0) return;
    const int moment = timeline_.moment(segment, op);
    const auto [entry, added] = workspace_at_.try_emplace(moment, static_cast<int>(lifetimes_.size()));
    if (added) lifetimes_.push_back({0, moment, moment, -1});
    Lifetime& shared = lifetimes_[static_cast<std::size_t>(entry->second)];
    shared.bytes = std::max(shared.bytes, bytes);
    if (const auto waited = waited_at_.find(moment); waited != waited_at_.end()) shared.last = waited->second;
  }

  void write_offsets(const ArenaPlan& arena) {
    for (std::size_t id = 0; id < lifetime_of_.size(); ++id) {
      const TensorId memory = owner(static_cast<TensorId>(id));
      if (memory == no_tensor || index(memory) < 0) continue;
      const std::int64_t within = offset_in_owner(static_cast<TensorId>(id));
      placed_.tensors[id].offset = arena.offsets[static_cast<std::size_t>(index(memory))] + within;
    }
    for_each_op([&](std::size_t s, std::size_t o, const Op&) {
      PlacedOp& op = placed_.segments[s].ops[o];
      if (op.lowering.workspace_bytes == 0) return;
      op.workspace = arena.offsets[static_cast<std::size_t>(workspace_at_.at(timeline_.moment(s, o)))];
    });
  }

  PlacedProgram& placed_;
  Timeline timeline_;
  std::vector<int> lifetime_of_;  // key: the tensor; value: the number of its lifetime, -1 if it has none
  std::vector<Lifetime> lifetimes_;
  std::map<TensorId, bool> continued_;
  std::map<int, int> workspace_at_;     // key: the moment; value: the number of the workspace's lifetime
  std::map<TensorId, int> started_at_;  // key: the output of an asynchronous collective; value: the collective's moment
  std::map<int, int> waited_at_;        // key: the moment of an asynchronous collective; value: the moment of its Wait
};

}  // namespace

std::int64_t place_slot(PlacedProgram& program) { return round_up(SlotPlanner(program).plan(), allocation_alignment); }

}  // namespace trainctl
