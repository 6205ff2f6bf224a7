// Changes the backward passes of logical shards, for replicas with whole and with sharded gradients.
#include "parallel/strategies/reproducible/leaves.h"

#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "core/graph/ops/training/update.h"

namespace trainctl {

int pass_of_leaf(const Program& program, const ScheduleItem& item) {
  return program.is_rest(item) ? item.segment : program.find(Phase::backward);
}

void rename(const std::map<TensorId, TensorId>& renamed, Segment& segment) {
  for (Op& op : segment.ops) {
    for (auto* list : {&op.inputs, &op.outputs}) {
      for (TensorId& id : *list) {
        if (const auto found = renamed.find(id); found != renamed.end()) id = found->second;
      }
    }
  }
}

std::int64_t pad_sums(Program& program, int replicas) {
  ParameterLayout layout = program.flat;
  layout.assign_offsets(program.tensors);
  const std::int64_t padded = round_up(layout.gradient_count, flat_alignment * replicas);
  if (padded == layout.gradient_count) return padded;
  const std::int64_t missing = padded - layout.gradient_count;
  const TensorId padding = program.add("padding", {missing}, DType::float32, Role::reduced);
  std::vector<FlatTensor>& reduced = program.flat.reduced;
  reduced.insert(reduced.begin(), {padding, 0});  // before the results, which the stages of a pipeline add
  for (Segment& segment : program.segments) {
    if (segment.phase != Phase::backward || program.find(Phase::forward) < 0) continue;
    segment.ops.insert(segment.ops.begin(), {std::make_shared<ZeroGradients>(missing), {}, {padding}, "padding", {}});
  }
  return padded;
}

void add_exchange(Program& program, std::vector<Op> ops) {
  require(program.segment(program.schedule.back().segment).phase == Phase::update,
          "the update is not the last segment");
  const ScheduleItem exchange{.segment = static_cast<int>(program.segments.size()), .waits = true};
  program.schedule.insert(program.schedule.end() - 1, exchange);
  program.segments.push_back({Phase::exchange, {}, std::move(ops)});
}

}  // namespace trainctl
