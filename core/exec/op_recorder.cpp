// Costs of ops from their recorded runs.
#include "core/exec/op_recorder.h"

#include <map>
#include <tuple>

#include "core/base/median.h"
#include "core/graph/ops/update.h"

namespace trainctl {
namespace {

std::int64_t bytes_of(const OpRun& run) {
  const Op& op = run.what();
  std::int64_t bytes = 0;
  if (const auto* reduce = op.get_if<AllReduce>()) return reduce->count * size_of(DType::float32);
  for (TensorId id : op.inputs) bytes += run.program->layouts[static_cast<std::size_t>(id)].bytes;
  for (TensorId id : op.outputs) bytes += run.program->layouts[static_cast<std::size_t>(id)].bytes;
  return bytes;
}

double flops_of(const OpRun& run) {
  const Op& op = run.what();
  std::vector<TensorType> inputs, outputs;
  for (TensorId id : op.inputs) inputs.push_back(run.program->program.tensor(id).type);
  for (TensorId id : op.outputs) outputs.push_back(run.program->program.tensor(id).type);
  return op.def->flops(inputs, outputs);
}

}  // namespace

std::vector<OpCost> op_costs(const std::vector<OpRun>& runs) {
  std::map<std::tuple<const LoweredProgram*, int, int>, std::size_t> index;
  std::vector<OpCost> costs;
  std::vector<std::vector<double>> seconds;
  for (const OpRun& run : runs) {
    const auto [entry, added] = index.try_emplace({run.program, run.segment, run.op}, costs.size());
    if (added) {
      costs.push_back({run, 0, flops_of(run), bytes_of(run)});
      seconds.emplace_back();
    }
    seconds[entry->second].push_back(run.end_seconds - run.start_seconds);
  }
  for (std::size_t i = 0; i < costs.size(); ++i) {
    costs[i].median_seconds = median(seconds[i]);
  }
  return costs;
}

}  // namespace trainctl
