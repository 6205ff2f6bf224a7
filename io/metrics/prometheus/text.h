// A run's state in the text exposition format of Prometheus, version 0.0.4.
#pragma once

#include <cstdint>
#include <string>

#include "io/metrics/run_record.h"

namespace trainctl {

// What a scrape shows of a run. Times in the record are in seconds since 1970.
struct PrometheusState {
  std::string run;  // its name
  RunRecord record;
  std::int64_t restarts = 0;  // starts of this run before this one
  double step_time = 0;       // of the newest step
};

// Families of which nothing is known yet are left out, and so are readings that a GPU does not give.
std::string prometheus_text(const PrometheusState& state);

}  // namespace trainctl
