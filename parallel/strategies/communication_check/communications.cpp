// Lists the communications of a program in the order of its schedule.
#include "parallel/strategies/communication_check/communications.h"

#include <map>
#include <set>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/whole_batch.h"
#include "core/program/placements.h"

namespace trainctl {
namespace {

using Kind = Communication::Kind;

// Describes the communication of a collective, send or receive.
Communication communication(const Program& program, const Op& op, const ScheduleItem& item) {
  const auto& def = op.as<Collective>();
  Communication result{.axis = def.axis, .asynchronous = def.asynchronous, .op = &op, .item = item};
  TensorId whole = op.outputs[0];
  if (op.get_if<AllReduce>() != nullptr) {
    result.kind = Kind::all_reduce;
  } else if (const auto* scatter = op.get_if<ReduceScatter>()) {
    result.kind = Kind::reduce_scatter;
    result.ranks = scatter->ranks;
    whole = op.inputs[0];
  } else if (const auto* gather = op.get_if<AllGather>()) {
    result.kind = Kind::all_gather;
    result.ranks = gather->ranks;
  } else if (const auto* columns = op.get_if<AllGatherColumns>()) {
    result.kind = Kind::all_gather;
    result.ranks = columns->shard.count;
  } else if (const auto* samples = op.get_if<GatherSamples>()) {
    result.kind = Kind::all_gather;
    result.ranks = static_cast<int>(std::ssize(samples->shares.counts));
  } else if (const auto* summed = op.get_if<ReduceScatterColumns>()) {
    result.kind = Kind::reduce_scatter;
    result.ranks = summed->shard.count;
    whole = op.inputs[0];
  } else if (const auto* exchange = op.get_if<AllToAll>()) {
    result.kind = Kind::all_to_all;
    result.ranks = exchange->ranks;
  } else if (const auto* broadcast = op.get_if<Broadcast>()) {
    result.kind = Kind::broadcast;
    result.peer = broadcast->root;
  } else if (const auto* send = op.get_if<Send>()) {
    result.kind = Kind::send;
    result.peer = send->peer;
  } else {
    result.kind = Kind::receive;
    result.peer = op.as<Receive>().peer;
  }
  const TensorType& type = program.tensor(whole).type;
  result.count = type.shape.count();
  if (const auto* columns = op.get_if<AllGatherColumns>()) {
    result.count = type.shape.rows() * columns->shard.count * columns->largest_width();
  }
  if (const auto* samples = op.get_if<GatherSamples>()) {
    const SampleShares& shares = samples->shares;
    result.count = result.count / shares.total() * shares.largest() * std::ssize(shares.counts);
  }
  result.dtype = type.dtype;
  return result;
}

[[noreturn]] void fail(const Program& program, const Communication& of, std::string_view problem) {
  throw Error(ErrorKind::internal, location_of(program, *of.op), format("{}: {}", describe(program, of), problem));
}

}  // namespace

std::vector<Communication> communications_of(const Program& program) {
  std::vector<Communication> list;
  std::map<TensorId, int> latest;  // last asynchronous communication that wrote a tensor; key: the tensor
  std::set<TensorId> unawaited;
  for (const ScheduleItem& item : program.schedule) {
    for (const Op& op : program.segment(item.segment).ops) {
      if (op.def->trait() != OpTrait::collective) continue;
      if (op.get_if<Wait>() == nullptr) {
        list.push_back(communication(program, op, item));
        if (!list.back().asynchronous) continue;
        latest[op.outputs[0]] = static_cast<int>(list.size()) - 1;
        unawaited.insert(op.outputs[0]);
        continue;
      }
      Communication wait{.kind = Kind::wait, .op = &op, .item = item};
      const auto found = latest.find(op.inputs[0]);
      if (found == latest.end())
        fail(program, wait, "no earlier asynchronous communication writes the tensor that it waits for");
      wait.awaited = found->second;
      wait.axis = list[static_cast<std::size_t>(wait.awaited)].axis;
      list.push_back(wait);
      unawaited.erase(op.inputs[0]);
    }
  }
  if (!unawaited.empty()) {
    fail(program, list[static_cast<std::size_t>(latest.at(*unawaited.begin()))],
         "it is asynchronous, and no op waits for it");
  }
  return list;
}

std::string describe(const Program& program, const Communication& communication) {
  std::string text = format("{} '{}' in {}", communication.op->def->kind(), communication.op->name,
                            name_of(program.segment(communication.item.segment)));
  if (program.micro_batches > 1) text += format(" {}", communication.item.micro_batch);
  return text + format(" of '{}'", program.name);
}

}  // namespace trainctl
