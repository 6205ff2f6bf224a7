// Measures a communicator like nccl-tests: time, algorithm bandwidth and bus bandwidth for increasing sizes.
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
  // The collective, with float32 and sum: all_reduce, reduce_scatter, all_gather, broadcast, all_to_all or send
  // (messages from even ranks to the next ones).
  CallKind collective = CallKind::all_reduce;
  std::int64_t first_bytes = 4 << 10;
  std::int64_t last_bytes = 64 << 20;
  double last_seconds = 3;       // stops after the first size for which a call takes longer
  int factor = 4;                // ratio of consecutive sizes
  int iterations = 20;           // calls in a batch; fewer if a batch would exceed batch_seconds
  int batches = 7;               // the result is the median over the batches
  double batch_seconds = 0.25;   // limit on the time of a batch; reduces the iterations
  bool ordinary_memory = false;  // uses the backend's memory, like activations, instead of the communicator's
};

struct CommBenchRow {
  CallKind collective = CallKind::all_reduce;
  std::int64_t bytes = 0;          // size of the whole buffer, with the data of all ranks
  std::int64_t count = 0;          // number of elements
  double seconds = 0;              // time of one call on the slowest rank
  double algorithm_bandwidth = 0;  // bytes / seconds
  double bus_bandwidth = 0;        // bytes / s that each rank's link carries: comparable for any number of ranks
  std::int64_t wrong = 0;          // number of wrong elements on all ranks
};

// Measures each size and returns its row. All ranks must call this function; the rows are equal on all ranks. The
// backend must be able to copy to the communicator's memory, and the stream must belong to the backend.
std::vector<CommBenchRow> bench_collective(Communicator& communicator, Backend& backend, Stream& stream,
                                           const CommBenchOptions& options);

// Returns the bandwidth in bytes per second of messages of `bytes` bytes between neighbours, from even to odd ranks; 0
// if there is only one rank. A ring's bus bandwidth cannot exceed this value. All ranks must call this function; the
// result is equal on all ranks.
double measure_link(Communicator& communicator, Backend& backend, Stream& stream, std::int64_t bytes);

// Returns the rows as a text table with a header line.
std::string to_table(const std::vector<CommBenchRow>& rows);

struct CommunicationBench {
  int ranks = 1;
  std::string communicator;  // name of the communicator
  std::string device;        // the backend's fingerprint
  std::vector<CommBenchRow> rows;
  double link = 0;  // bytes per second of messages between two ranks; 0: not measured
};

// Measures all-reduces of increasing sizes, up to the first that takes longer than `seconds`, and with `measures_link`
// also messages between neighbouring ranks. All ranks must call this function; the result is equal on all ranks.
CommunicationBench bench_communication(Communicator& communicator, Backend& backend, bool measures_link,
                                       double seconds);

// Return the result as a JSON document on one line, and as a table for people.
std::string to_json(const CommunicationBench& bench);
std::string to_text(const CommunicationBench& bench);

}  // namespace trainctl
