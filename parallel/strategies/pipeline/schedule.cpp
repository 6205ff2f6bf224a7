// Schedules a stage's micro-batches and exchanges. All exchanges are asynchronous: a send overlaps the passes after it,
// a receive overlaps the passes before its reader, and a pass waits for the exchanges of its slot.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "core/graph/ops/collectives.h"
#include "parallel/strategies/pipeline/events.h"
#include "parallel/strategies/pipeline/pipeline.h"

namespace trainctl {
namespace {

// A stage's program, divided into passes and exchanges.
class StageSchedule {
 public:
  StageSchedule(Program program, const MeshRank& rank)
      : program_(std::move(program)), own_(rank.along(MeshAxis::pipeline)), stages_(rank.size(MeshAxis::pipeline)) {
    const std::set<int> of_rest = program_.segments_of_rest();
    const auto passes = static_cast<int>(program_.segments.size());
    for (int s = 0; s < passes; ++s) move_exchanges(program_.segments[index(s)], of_rest.contains(s));
    for (const bool waits : {false, true}) {
      for (Exchange& exchange : exchanges_) {
        for (Transfer* transfer : {&exchange.equal, &exchange.rest}) {
          std::vector<Op>& ops = waits ? transfer->waits : transfer->ops;
          if (!ops.empty()) (waits ? transfer->wait_segment : transfer->segment) = add_segment(std::move(ops));
        }
      }
    }
  }

  Program ordered(PipelineSchedule schedule) {
    const std::vector<ScheduleItem> before = std::exchange(program_.schedule, {});
    const bool training = program_.find(Phase::backward) >= 0;
    const std::vector<Passes> passes = passes_of(before);
    const auto count = static_cast<int>(passes.size());
    std::ranges::copy_if(before, std::back_inserter(program_.schedule), [&](const ScheduleItem& item) {
      return program_.segment(item.segment).phase == Phase::count;
    });
    std::vector<StageMessage> messages;
    for (const Exchange& exchange : exchanges_) messages.push_back(exchange.message);
    const auto events = pipeline_events(schedule, stages_, own_, count, training, messages);
    std::vector<int> events_left(index(count));
    for (const PipelineEvent& event : events) ++events_left[index(event.micro_batch)];
    for (const PipelineEvent& event : events) {
      const int slot = take_slot(event.micro_batch);
      if (event.kind == PipelineEvent::Kind::message) {
        begin(exchanges_[index(event.message)], passes[index(event.micro_batch)].number, slot);
      } else {
        await_all_of(slot);
        const Passes& own = passes[index(event.micro_batch)];
        for (ScheduleItem item : event.kind == PipelineEvent::Kind::forward ? own.forward : own.backward) {
          item.slot = slot;
          program_.schedule.push_back(item);
        }
      }
      if (--events_left[index(event.micro_batch)] == 0) slots_[index(slot)] = -1;
    }
    for (Exchange& exchange : exchanges_) await(exchange);
    program_.slots = static_cast<int>(slots_.size());
    if (training) program_.schedule.push_back(before.back());  // the update
    return std::move(program_);
  }

 private:
  // The passes of a micro-batch in the schedule without a pipeline. Several micro-batches without samples may have the
  // same number.
  struct Passes {
    int number = 0;
    std::vector<ScheduleItem> forward, backward;
  };
  std::vector<Passes> passes_of(const std::vector<ScheduleItem>& schedule) const {
    std::vector<Passes> all;
    bool is_complete = true;  // whether the last micro-batch has its forward pass
    for (const ScheduleItem& item : schedule) {
      const Segment& segment = program_.segment(item.segment);
      if (segment.phase == Phase::backward) all.back().backward.push_back(item);
      if (segment.phase != Phase::forward) continue;
      if (is_complete) all.push_back({item.micro_batch, {}, {}});
      all.back().forward.push_back(item);
      is_complete = segment.variant == Variant::first;  // a segment of zeros instead of samples precedes it
    }
    return all;
  }

  // The ops of an exchange and their waits, for micro-batches of one size.
  struct Transfer {
    std::vector<Op> ops, waits;
    int segment = -1, wait_segment = -1;
  };
  // The tensors that the stage sends to another stage, or receives from it, for a micro-batch.
  struct Exchange {
    StageMessage message;
    Transfer equal, rest;                      // for equal micro-batches, and for a smaller last one
    std::optional<ScheduleItem> pending_wait;  // the wait for the last exchange that was begun
  };

  int add_segment(std::vector<Op> ops) {
    program_.segments.push_back({Phase::exchange, {}, std::move(ops)});
    return static_cast<int>(program_.segments.size()) - 1;
  }

  // Moves the sends and receives of a pass to their exchanges. All variants of the backward pass exchange the same
  // tensors, so only the exchanges of the first variant are moved; a smaller micro-batch has only one variant.
  void move_exchanges(Segment& segment, bool of_rest) {
    const auto transfer = [&](const StageMessage& message) -> Transfer& {
      Exchange& exchange = exchange_of(message);
      return of_rest ? exchange.rest : exchange.equal;
    };
    if (segment.phase != Phase::forward && segment.phase != Phase::backward) return;
    const bool forward = segment.phase == Phase::forward, is_moved = of_rest || segment.variant == Variant::first;
    std::vector<Op> kept;
    for (Op& op : segment.ops) {
      const auto* send = op.get_if<Send>();
      const auto* receive = op.get_if<Receive>();
      if ((send == nullptr || send->axis != MeshAxis::pipeline) &&
          (receive == nullptr || receive->axis != MeshAxis::pipeline)) {
        kept.push_back(std::move(op));
      } else if (is_moved && send != nullptr) {
        auto asynchronous_def = std::make_shared<Send>(*send);
        asynchronous_def->asynchronous = true;
        add(transfer({forward, own_, send->peer}), op, std::move(asynchronous_def));
      } else if (is_moved) {
        set_placement(op.outputs[0]);
        auto asynchronous_def = std::make_shared<Receive>(*receive);
        asynchronous_def->asynchronous = true;
        add(transfer({forward, receive->peer, own_}), op, std::move(asynchronous_def));
      }
    }
    segment.ops = std::move(kept);
  }

  Exchange& exchange_of(const StageMessage& message) {
    const auto known =
        std::find_if(exchanges_.begin(), exchanges_.end(), [&](const Exchange& e) { return e.message == message; });
    if (known != exchanges_.end()) return *known;
    exchanges_.push_back({message});
    return exchanges_.back();
  }

  static void add(Transfer& transfer, Op op, std::shared_ptr<const OpDef> asynchronous) {
    op.def = std::move(asynchronous);
    transfer.waits.push_back({std::make_shared<Wait>(), op.outputs, op.outputs, op.name, op.location});
    transfer.ops.push_back(std::move(op));
  }

  // Marks a received tensor as split over the data axis, since each replica receives its own samples.
  void set_placement(TensorId id) { program_.tensors[index(id)].placements = placed(split_along(0), {MeshAxis::data}); }

  // Adds an exchange to the schedule. A receive is moved before the preceding passes of other slots, but not before
  // another exchange or a count.
  void begin(Exchange& exchange, int micro_batch, int slot) {
    await(exchange);
    auto at = program_.schedule.end();
    if (exchange.message.to == own_) {
      await_all_of(slot, true);
      at = program_.schedule.end();
      const auto may_overtake = [&](const ScheduleItem& item) {
        const Phase phase = program_.segment(item.segment).phase;
        return phase != Phase::exchange && phase != Phase::count && item.slot != slot;
      };
      while (at != program_.schedule.begin() && may_overtake(*std::prev(at))) --at;
    }
    ScheduleItem item{0, micro_batch, slot};
    const Transfer& transfer = program_.is_rest(item) ? exchange.rest : exchange.equal;
    item.segment = transfer.segment;
    program_.schedule.insert(at, item);
    exchange.pending_wait = ScheduleItem{transfer.wait_segment, micro_batch, slot};
  }

  // Adds the wait for the last exchange that was begun, if it is pending.
  void await(Exchange& exchange) {
    if (exchange.pending_wait) program_.schedule.push_back(*std::exchange(exchange.pending_wait, std::nullopt));
  }
  // Adds the waits for all exchanges of a slot, before its tensors are read or their memory is reused. With
  // `sends_only`, adds only the waits for sends, since the slot is about to receive further tensors.
  void await_all_of(int slot, bool sends_only = false) {
    for (Exchange& exchange : exchanges_) {
      const bool matches = !sends_only || exchange.message.from == own_;
      if (matches && exchange.pending_wait && exchange.pending_wait->slot == slot) await(exchange);
    }
  }

  // Returns the slot of the micro-batch, or assigns it a free one.
  int take_slot(int micro_batch) {
    auto slot = std::find(slots_.begin(), slots_.end(), micro_batch);
    if (slot == slots_.end()) slot = std::find(slots_.begin(), slots_.end(), -1);
    if (slot == slots_.end()) slot = slots_.insert(slot, -1);
    *slot = micro_batch;
    return static_cast<int>(slot - slots_.begin());
  }

  Program program_;
  const int own_, stages_;
  std::vector<Exchange> exchanges_;
  std::vector<int> slots_;  // micro-batch in each slot; -1: the slot is free
};

}  // namespace

Program schedule_stage(Program program, const MeshRank& rank, const Strategy& strategy) {
  if (rank.size(MeshAxis::pipeline) == 1 || program.find(Phase::forward) < 0) return program;
  return StageSchedule(std::move(program), rank).ordered(strategy.options.schedule);
}

}  // namespace trainctl
