// A pass over a run's validation data with its best weights: what it takes for what.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/metrics/result.h"
#include "io/report/confused.h"

namespace trainctl {

struct RankContext;
struct RunSpec;

struct ConfusionPass {
  Table matrix;                         // targets by predictions
  std::vector<ConfusedSample> samples;  // the surest mistakes, the surest first; with pixels where they are images
};

// `run`: its directory; `most`: samples at most. One rank alone. Throws Error{config} where the network does not tell
// classes or the config has no validation data.
ConfusionPass confusion_pass(const RunSpec& spec, const std::string& run, std::size_t most, RankContext& context);

}  // namespace trainctl
