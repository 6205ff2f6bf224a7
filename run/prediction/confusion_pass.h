// Evaluates a run's best weights on its validation data: the confusion matrix and the most confident mistakes.
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
  Table matrix;                         // rows are targets, columns are predictions
  std::vector<ConfusedSample> samples;  // mistakes with the highest probabilities, the highest first, with pixels
};

// `run`: the run directory; `max_samples`: the largest number of samples to return. Runs on one rank. Throws
// Error{config} if the network does not predict classes or the config has no validation data.
ConfusionPass confusion_pass(const RunSpec& spec, const std::string& run, std::size_t max_samples,
                             RankContext& context);

}  // namespace trainctl
