// The all-reduce between a run's ranks measured, as a table.
#pragma once

#include <string>
#include <vector>

#include "parallel/bench/collectives.h"

namespace trainctl {

struct CommunicationBench {
  int ranks = 1;
  std::string communicator;  // its name
  std::string device;        // the backend's fingerprint
  std::vector<CommBenchRow> rows;
  double link = 0;  // bytes a second of messages between two ranks; 0: not measured
};

// All-reduces of growing sizes, none of which takes longer than so many seconds, and where `measures_link` is set
// messages between neighbours. Collective; equal on all ranks.
CommunicationBench bench_communication(Communicator& communicator, Backend& backend, bool measures_link,
                                       double seconds);

// One JSON document of a line, and a table for people.
std::string to_json(const CommunicationBench& bench);
std::string to_text(const CommunicationBench& bench);

}  // namespace trainctl
