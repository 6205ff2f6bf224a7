// Joining the passes of two batch sizes in one program.
#include "core/program/join.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

// Whether all passes of a step share the tensor, whatever their number of samples.
bool is_shared(const Tensor& tensor) { return tensor.role != Role::activation && tensor.role != Role::input; }

// By tensor of `rest`, the same tensor of `program`: a shared one, or one that is added to it.
std::vector<TensorId> matched(const Program& rest, Program& program) {
  std::map<std::string_view, TensorId> shared;
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    if (is_shared(program.tensors[id])) shared.emplace(program.tensors[id].name, static_cast<TensorId>(id));
  }
  std::vector<TensorId> in_program;
  auto next = static_cast<TensorId>(program.tensors.size());
  for (const Tensor& tensor : rest.tensors) {
    const auto found = shared.find(tensor.name);
    require(!is_shared(tensor) || found != shared.end(), "programs of one network share its parameters and sums");
    in_program.push_back(is_shared(tensor) ? found->second : next++);
  }
  for (const Tensor& tensor : rest.tensors) {
    if (is_shared(tensor)) continue;
    Tensor added = tensor;
    if (added.alias_of != no_tensor) added.alias_of = in_program[static_cast<std::size_t>(added.alias_of)];
    for (TensorId& member : added.members) member = in_program[static_cast<std::size_t>(member)];
    program.tensors.push_back(std::move(added));
  }
  return in_program;
}

}  // namespace

Program with_rest(Program program, const Program& rest) {
  const std::vector<TensorId> tensors = matched(rest, program);
  const auto translate = [&](TensorId& id) {
    if (id != no_tensor) id = tensors[static_cast<std::size_t>(id)];
  };
  const ScheduleItem update = program.schedule.back();
  program.schedule.pop_back();
  for (const ScheduleItem& item : rest.schedule) {
    if (rest.segment(item.segment).phase == Phase::update || item.micro_batch + 1 < rest.micro_batches) continue;
    Segment segment = rest.segment(item.segment);
    for (Op& op : segment.ops) {
      std::for_each(op.inputs.begin(), op.inputs.end(), translate);
      std::for_each(op.outputs.begin(), op.outputs.end(), translate);
    }
    program.schedule.push_back({static_cast<int>(program.segments.size()), program.micro_batches, item.slot});
    program.segments.push_back(std::move(segment));
  }
  program.schedule.push_back(update);
  program.rest_samples = rest.micro_batch_samples;
  program.rest = rest.batch;
  std::for_each(program.rest.inputs.begin(), program.rest.inputs.end(), translate);
  std::for_each(program.rest.targets.begin(), program.rest.targets.end(), translate);
  translate(program.rest.weights);
  translate(program.rest.samples);
  program.name += format(" and {}", rest.micro_batch_samples);
  return program;
}

}  // namespace trainctl
