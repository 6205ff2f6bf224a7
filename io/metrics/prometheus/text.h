// Writes a run's state in the text exposition format of Prometheus, version 0.0.4.
#pragma once

#include <cstdint>
#include <string>

#include "io/metrics/run_record.h"

namespace trainctl {

// The values of a run that a scrape shows. Times are in seconds since 1970.
struct PrometheusState {
  std::string run;  // the run's name
  RunRecord record;
  std::int64_t restarts = 0;  // starts of this run before this one
  double step_time = 0;       // when the newest step ended
};

// Families without a known value are left out, and so are readings that a GPU does not provide.
std::string prometheus_text(const PrometheusState& state);

}  // namespace trainctl
