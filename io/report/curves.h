// The curves of runs: what a page draws of their histories.
#pragma once

#include <string>
#include <vector>

#include "io/report/history.h"

namespace trainctl {

struct NamedHistory {
  std::string name;
  const RunHistory* history;
};

// Of one run: loss and metrics of training and validation over each other, learning rate, gradient norm, throughput,
// the wait for data, and the use of GPUs, each by epochs. Of several runs: a chart for each of these, with a curve a
// run. HTML; "" where there is nothing to draw.
std::string curves_of(const RunHistory& history);
std::string curves_of(const std::vector<NamedHistory>& runs);

}  // namespace trainctl
