// Checks the data that every two GPUs exchange: boards without working peer access may corrupt the data, or hang.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "parallel/health/doctor/doctor.h"

namespace trainctl {

// The data that one rank has sent to another one.
struct Exchange {
  int from = 0, to = 0;
  std::int64_t bytes = 0;
  std::int64_t wrong_bits = 0;   // number of received bits that differ from those that were sent
  std::int64_t first_wrong = 0;  // offset of the first byte that differs
};

// Sends random data between every two ranks of `gpus`, in both directions, and compares what arrives with what was
// sent, bit by bit. Returns all exchanges on rank 0, by pair; empty on the other ranks. If data does not arrive within
// the deadline of `gpus`, throws Error{peer} that names the two ranks. `host`: the stream of `world`. All ranks must
// call this function.
std::vector<Exchange> exchange_data(Communicator& gpus, Backend& backend, Communicator& world, Stream& host);

// Returns a problem for every two ranks between which data was wrong. `hosts`: the host of each rank.
std::vector<Problem> problems_of(const std::vector<Exchange>& exchanges, const std::vector<std::string>& hosts);

// Write exchanges for the report, and read them.
Json to_json(const std::vector<Exchange>& exchanges);
std::vector<Exchange> exchanges_in(const Json& json);

}  // namespace trainctl
