// Costs of ops from their recorded runs.
#include "core/exec/observe/op_recorder.h"

#include <map>
#include <tuple>

#include "core/base/median.h"
#include "core/graph/ops/collectives.h"

namespace trainctl {
namespace {

// A reduction moves its part of the region that it names.
OpWork work_of_run(const OpRun& run) {
  const auto* reduce = run.what().get_if<AllReduce>();
  if (reduce != nullptr) return {0, reduce->count * size_of(DType::float32)};
  return work_of(*run.program, run.what());
}

}  // namespace

std::vector<OpCost> op_costs(const std::vector<OpRun>& runs) {
  std::map<std::tuple<const PlacedProgram*, int, int>, std::size_t> index;
  std::vector<OpCost> costs;
  std::vector<std::vector<double>> seconds;
  for (const OpRun& run : runs) {
    const auto [entry, added] = index.try_emplace({run.program, run.segment, run.op}, costs.size());
    if (added) {
      costs.push_back({run, 0, work_of_run(run)});
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
