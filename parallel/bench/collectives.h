// Measures a communicator as nccl-tests does: time, algorithm bandwidth and bus bandwidth for growing sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/comm/call.h"

namespace trainctl {

class Backend;
class Communicator;
class Stream;

struct CommBenchOptions {
  // Or reduce_scatter, all_gather, broadcast, all_to_all, send (messages from even ranks to the next ones); float32,
  // sum.
  CallKind collective = CallKind::all_reduce;
  std::int64_t first_bytes = 4 << 10;
  std::int64_t last_bytes = 64 << 20;
  double last_seconds = 3;       // nor larger than a size of which one call takes longer
  int factor = 4;                // from one size to the next
  int iterations = 20;           // in a batch; fewer where they would take long
  int batches = 7;               // the median counts
  double batch_seconds = 0.25;   // with fewer iterations where a batch would take longer
  bool ordinary_memory = false;  // the backend's, as activations have it, in the place of the communicator's own
};

struct CommBenchRow {
  CallKind collective = CallKind::all_reduce;
  std::int64_t bytes = 0;          // the whole buffer, all parts together
  std::int64_t count = 0;          // elements
  double seconds = 0;              // of one call, on the slowest rank
  double algorithm_bandwidth = 0;  // bytes / seconds
  double bus_bandwidth = 0;  // times what each rank's link must carry of them: comparable between numbers of ranks
  std::int64_t wrong = 0;    // elements with a wrong value, on all ranks
};

// One row for each size. Collective; rows are equal on all ranks.
// The backend's copies reach the communicator's memory, the stream is one of the backend's.
std::vector<CommBenchRow> bench_collective(Communicator& communicator, Backend& backend, Stream& stream,
                                           const CommBenchOptions& options);

// Bytes a second of messages of so many bytes between neighbours, even ranks to odd ones: what a ring's bus bandwidth
// cannot exceed. 0 on a rank alone. Collective; equal on all ranks.
double measure_link(Communicator& communicator, Backend& backend, Stream& stream, std::int64_t bytes);

// The rows as a table of text, one line each, under a head line.
std::string to_table(const std::vector<CommBenchRow>& rows);

struct CommunicationBench {
  int ranks = 1;
  std::string communicator;  // its name
  std::string device;        // the backend's fingerprint
  std::vector<CommBenchRow> rows;
  double link = 0;  // bytes a second of messages between two ranks; 0: not measured
};

// Measures all-reduces of growing sizes, up to the first that takes longer than `seconds`, and with `measures_link`
// also messages between neighbouring ranks. Collective; the result is equal on all ranks.
CommunicationBench bench_communication(Communicator& communicator, Backend& backend, bool measures_link,
                                       double seconds);

// One JSON document of a line, and a table for people.
std::string to_json(const CommunicationBench& bench);
std::string to_text(const CommunicationBench& bench);

}  // namespace trainctl
