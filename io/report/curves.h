// Draws the curves of runs from their histories.
#pragma once

#include <string>
#include <vector>

#include "io/report/history.h"

namespace trainctl {

struct NamedHistory {
  std::string name;
  const RunHistory* history;
};

// Returns charts as HTML, all with epochs as x axis; "" if there are no values. For one run: loss and metrics of
// training and validation in one chart each, learning rate, gradient norm, throughput, time of waiting for data, and
// utilization and memory of GPUs. For several runs: a chart for each of these values, with a curve for each run.
std::string curves_of(const RunHistory& history);
std::string curves_of(const std::vector<NamedHistory>& runs);

}  // namespace trainctl
