// Computes the bytes and seconds of an average.
#include "parallel/plan/averaging.h"

#include <algorithm>
#include <cstddef>

#include "parallel/plan/simulator.h"
#include "parallel/trainer/hooks/local_steps.h"

namespace trainctl {
namespace {

// The number of values that are averaged: parameters, running statistics, optimizer states and moving averages.
std::int64_t averaged_values(const Program& program) {
  const ParameterLayout& flat = program.flat;
  std::int64_t values = 0;
  for (const FlatEntry& entry : flat.parameters) {
    values += entry.count;
    if (entry.gradient != no_tensor) values += flat.kept_of(entry);
  }
  for (const FlatTensor& statistic : flat.statistics) values += program.tensor(statistic.tensor).type.shape.count();
  return values;
}

struct Average {
  double seconds = 0;
  double bytes_sent = 0;
};

// Returns the average of one stage, which is communicated in pieces of `max_averaged_values` values.
Average average_of(const StageRank& stage, const Nodes& nodes, const Costs& costs) {
  Average average;
  for (std::int64_t left = averaged_values(*stage.program); left > 0; left -= max_averaged_values) {
    const Communication piece{
        .kind = Communication::Kind::all_reduce, .axis = MeshAxis::data, .count = std::min(left, max_averaged_values)};
    const Traffic traffic = traffic_of(piece, stage.rank, nodes);
    average.seconds += costs.communication_seconds(traffic).alone();
    average.bytes_sent += bytes_sent(traffic);
  }
  return average;
}

}  // namespace

double add_average(SimulatedStep& step, int every, const std::vector<StageRank>& stages, const Nodes& nodes,
                   const Costs& costs) {
  if (stages.front().rank.mesh.data == 1) return 0;
  std::vector<Average> averages;
  for (const StageRank& stage : stages) averages.push_back(average_of(stage, nodes, costs));
  const double longest = std::ranges::max(averages, {}, &Average::seconds).seconds;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    step.stages[s].communication += averages[s].seconds / every;
    step.stages[s].bubble += (longest - averages[s].seconds) / every;
    step.bytes_sent[s] += averages[s].bytes_sent / every;
  }
  step.seconds += longest / every;
  return longest;
}

}  // namespace trainctl
