// Scheduling a stage's micro-batches, and what it exchanges in between. All exchanges are asynchronous: a send runs
// beside the passes behind it, a receive beside those before its reader, and a pass waits for what its slot exchanges.
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

std::size_t index(int number) { return static_cast<std::size_t>(number); }

// A stage's program, taken apart into passes and exchanges.
class StageSchedule {
 public:
  StageSchedule(Program program, const MeshRank& rank)
      : program_(std::move(program)), own_(rank.along(MeshAxis::pipeline)), stages_(rank.size(MeshAxis::pipeline)) {
    const std::set<int> of_rest = program_.segments_of_rest();
    const auto passes = static_cast<int>(program_.segments.size());
    for (int s = 0; s < passes; ++s) take_exchanges(program_.segments[index(s)], of_rest.contains(s));
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
  // The passes of a micro-batch in the schedule without a pipeline. Several that have no samples may have one number.
  struct Passes {
    int number = 0;
    std::vector<ScheduleItem> forward, backward;
  };
  std::vector<Passes> passes_of(const std::vector<ScheduleItem>& schedule) const {
    std::vector<Passes> all;
    bool is_complete = true;  // the forward pass of the last one
    for (const ScheduleItem& item : schedule) {
      const Segment& segment = program_.segment(item.segment);
      if (segment.phase == Phase::backward) all.back().backward.push_back(item);
      if (segment.phase != Phase::forward) continue;
      if (is_complete) all.push_back({item.micro_batch, {}, {}});
      all.back().forward.push_back(item);
      is_complete = segment.variant == Variant::first;  // zeros in the place of samples come before it
    }
    return all;
  }

  // The ops of an exchange, for micro-batches of one size.
  struct Transfer {
    std::vector<Op> ops, waits;
    int segment = -1, wait_segment = -1;
  };
  // What the stage sends another one, or receives from it, for a micro-batch.
  struct Exchange {
    StageMessage message;
    Transfer equal, rest;                   // of equal micro-batches, and of a smaller one behind them
    std::optional<ScheduleItem> under_way;  // the wait for the one that was begun last
  };

  int add_segment(std::vector<Op> ops) {
    program_.segments.push_back({Phase::exchange, {}, std::move(ops)});
    return static_cast<int>(program_.segments.size()) - 1;
  }

  // Moves the sends and receives of a pass to their exchanges. The variants of the backward pass exchange the same;
  // a smaller micro-batch has one of them.
  void take_exchanges(Segment& segment, bool of_rest) {
    const auto transfer = [&](const StageMessage& message) -> Transfer& {
      Exchange& exchange = exchange_of(message);
      return of_rest ? exchange.rest : exchange.equal;
    };
    if (segment.phase != Phase::forward && segment.phase != Phase::backward) return;
    const bool forward = segment.phase == Phase::forward, counts = of_rest || segment.variant == Variant::first;
    std::vector<Op> kept;
    for (Op& op : segment.ops) {
      const auto* send = op.get_if<Send>();
      const auto* receive = op.get_if<Receive>();
      if ((send == nullptr || send->axis != MeshAxis::pipeline) &&
          (receive == nullptr || receive->axis != MeshAxis::pipeline)) {
        kept.push_back(std::move(op));
      } else if (counts && send != nullptr) {
        auto beside = std::make_shared<Send>(*send);
        beside->asynchronous = true;
        add(transfer({forward, own_, send->peer}), op, std::move(beside));
      } else if (counts) {
        place_received(op.outputs[0]);
        auto beside = std::make_shared<Receive>(*receive);
        beside->asynchronous = true;
        add(transfer({forward, receive->peer, own_}), op, std::move(beside));
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

  // What is received is of a micro-batch: each replica has its own samples.
  void place_received(TensorId id) {
    std::vector<Placement>& placements = program_.tensors[static_cast<std::size_t>(id)].placements;
    placements.resize(mesh_axes);
    placements[static_cast<std::size_t>(MeshAxis::data)] = split_along(0);
  }

  // A receive begins before the passes of other slots that its event follows; no exchange passes another one.
  void begin(Exchange& exchange, int micro_batch, int slot) {
    await(exchange);
    auto at = program_.schedule.end();
    if (exchange.message.to == own_) {
      await_all_of(slot, true);
      at = program_.schedule.end();
      const auto is_passed = [&](const ScheduleItem& item) {
        return program_.segment(item.segment).phase != Phase::exchange && item.slot != slot;
      };
      while (at != program_.schedule.begin() && is_passed(*std::prev(at))) --at;
    }
    ScheduleItem item{0, micro_batch, slot};
    const Transfer& transfer = program_.is_rest(item) ? exchange.rest : exchange.equal;
    item.segment = transfer.segment;
    program_.schedule.insert(at, item);
    exchange.under_way = ScheduleItem{transfer.wait_segment, micro_batch, slot};
  }

  // Waits for the end of what was begun last, if it is still under way.
  void await(Exchange& exchange) {
    if (exchange.under_way) program_.schedule.push_back(*std::exchange(exchange.under_way, std::nullopt));
  }
  // Before the slot's tensors are read, or others take their memory; of sends alone where more is received for it.
  void await_all_of(int slot, bool sends_alone = false) {
    for (Exchange& exchange : exchanges_) {
      const bool counts = !sends_alone || exchange.message.from == own_;
      if (counts && exchange.under_way && exchange.under_way->slot == slot) await(exchange);
    }
  }

  // The slot that the micro-batch lies in, else a free one.
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
  std::vector<int> slots_;  // the micro-batch in each; -1: none
};

}  // namespace

Program schedule_stage(Program program, const MeshRank& rank, const Strategy& strategy) {
  if (rank.size(MeshAxis::pipeline) == 1 || program.find(Phase::forward) < 0) return program;
  return StageSchedule(std::move(program), rank).ordered(strategy.options.schedule);
}

}  // namespace trainctl
