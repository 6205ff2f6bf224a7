// Computes the costs of ops from their recorded runs.
#include "core/exec/observe/op_recorder.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/median.h"

namespace trainctl {

std::vector<OpCost> op_costs(const std::vector<OpRun>& runs) {
  std::map<std::tuple<const PlacedProgram*, int, int>, std::size_t> index;
  std::vector<OpCost> costs;
  std::vector<std::vector<double>> seconds;
  for (const OpRun& run : runs) {
    const auto [entry, added] = index.try_emplace({run.program, run.segment, run.op}, costs.size());
    if (added) {
      costs.push_back({run, 0, work_of(*run.program, run.what())});
      seconds.emplace_back();
    }
    seconds[entry->second].push_back(run.end_seconds - run.start_seconds);
  }
  for (std::size_t i = 0; i < costs.size(); ++i) {
    std::vector<double>& times = seconds[i];
    costs[i].median_seconds = median(times);
    std::sort(times.begin(), times.end());
    const std::size_t quarter = times.size() / 4;
    if (costs[i].median_seconds > 0) {
      costs[i].spread = (times[times.size() - 1 - quarter] - times[quarter]) / costs[i].median_seconds;
    }
  }
  return costs;
}

}  // namespace trainctl
