// Writes a program as text for people.
#include "core/program/dump.h"

#include <algorithm>
#include <set>

#include "core/base/format.h"

namespace trainctl {
namespace {

std::string_view name_of(Role role) {
  switch (role) {
    case Role::parameter:
      return "parameter";
    case Role::statistic:
      return "statistic";
    case Role::gradient:
      return "gradient";
    case Role::reduced:
      return "reduced";
    case Role::state:
      return "state";
    case Role::copy:
      return "copy";
    case Role::input:
      return "input";
    case Role::activation:
      return "activation";
    case Role::scalar:
      return "scalar";
    case Role::cache:
      return "cache";
  }
  return "?";
}

std::string reference(const Program& program, TensorId id) {
  if (id == no_tensor) return "-";
  const Tensor& tensor = program.tensor(id);
  return format("{} {}", tensor.name, to_string(tensor.type.shape));
}

std::string list(const Program& program, const std::vector<TensorId>& ids) {
  std::string text;
  for (TensorId id : ids) text += (text.empty() ? "" : ", ") + reference(program, id);
  return text;
}

// One line for each tensor that an op reads or writes, in the order of tensor numbers.
std::string tensors(const Program& program) {
  std::set<TensorId> used;
  for (const Segment& segment : program.segments) {
    for (const Op& op : segment.ops) {
      used.insert(op.inputs.begin(), op.inputs.end());
      used.insert(op.outputs.begin(), op.outputs.end());
    }
  }
  used.erase(no_tensor);
  std::string result = "tensors\n";
  for (TensorId id : used) {
    const Tensor& tensor = program.tensor(id);
    result += format("  {:<40} {:<10} {:<9} {}", tensor.name, name_of(tensor.role), name_of(tensor.type.dtype),
                     to_string(tensor.type.shape));
    if (tensor.alias_of != no_tensor) result += format(" = {}", program.tensor(tensor.alias_of).name);
    const bool replicated = std::all_of(tensor.placements.begin(), tensor.placements.end(),
                                        [](const Placement& p) { return p.kind == Placement::Kind::replicated; });
    if (!replicated) {
      for (const Placement& placement : tensor.placements) result += " " + to_string(placement);
    }
    result += "\n";
  }
  return result;
}

std::string flat(const Program& program) {
  const ParameterLayout& layout = program.flat;
  std::string result = format("flat layout: {} elements, {} of them train, {} with the sums after the gradients\n",
                              layout.parameter_count, layout.trainable_count, layout.gradient_count);
  const auto line = [&](std::int64_t offset, TensorId id, std::string_view note) {
    result += format("  {:>10} {}{}\n", offset, reference(program, id), note);
  };
  for (const FlatEntry& entry : layout.parameters) {
    const bool trains = entry.offset < layout.trainable_count;
    std::string note = !trains ? "  frozen" : entry.decay ? "" : "  without decay";
    for (const int stage : entry.stages)
      note += format("{} {}", stage == entry.stages.front() ? "  of stages" : "", stage);
    line(entry.offset, entry.parameter, note);
  }
  for (const FlatTensor& sum : layout.reduced) line(sum.offset, sum.tensor, "  reduced");
  for (const FlatTensor& statistic : layout.statistics) {
    line(statistic.offset, statistic.tensor, "  running statistic");
  }
  for (const std::string& state : layout.states) result += format("  state {}\n", state);
  if (layout.averages) result += "  averages\n";
  return result;
}

}  // namespace

std::string dump(const Program& program, const Op& op) {
  const std::string attributes = op.def->attributes();
  return format("{}{}{}  {}: {} -> {}", op.def->kind(), attributes.empty() ? "" : " ", attributes, op.name,
                list(program, op.inputs), list(program, op.outputs));
}

std::string dump(const Program& program) {
  std::string result = format("program {}: {} micro-batches of {} samples, {} slots\n", program.name,
                              program.micro_batches, program.micro_batch_samples, program.slots);
  for (const Segment& segment : program.segments) {
    result += format("segment {}\n", name_of(segment));
    for (const Op& op : segment.ops) result += format("  {}\n", dump(program, op));
  }
  result += "schedule\n";
  for (const ScheduleItem& item : program.schedule) {
    result +=
        format("  {} micro-batch {} slot {}{}\n", name_of(program.segment(item.segment)), item.micro_batch, item.slot,
               program.streams == 1 ? "" : format(" stream {}{}", item.stream, item.waits ? ", waits" : ""));
  }
  return result + flat(program) + tensors(program);
}

}  // namespace trainctl
