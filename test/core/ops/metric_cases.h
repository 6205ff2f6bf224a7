// The cases of metrics, whose inputs and values are in test/golden/ops.safetensors (test/golden/metrics.py).
#pragma once

#include <vector>

#include "core/graph/ops/metrics/metrics.h"

namespace trainctl::test {

struct MetricCase {
  const char* name;
  MetricRule rule;
};

const std::vector<MetricCase>& metric_cases();

}  // namespace trainctl::test
