// Reads the results of runs from their metrics.jsonl.
#pragma once

#include <string>
#include <vector>

#include "test/support/command.h"

namespace trainctl::test {

// The losses of all logged steps, in their order.
inline std::vector<double> losses(const std::string& directory) {
  std::vector<double> found;
  for (const Json& step : events(directory, "step")) found.push_back(step.at("loss"));
  return found;
}

// The weights_sha256 of a run that has ended.
inline std::string hash(const std::string& directory) { return events(directory, "end").back().at("weights_sha256"); }

}  // namespace trainctl::test
