// Derives the problems of a run's machines from the facts that its ranks found.
#pragma once

#include <string>
#include <vector>

#include "core/base/json_fwd.h"

namespace trainctl {

struct Problem {
  bool stops_a_run = false;  // else it makes one slower, or is worth knowing
  std::string where;         // a host, "rank 3 on node2", or "" for all
  std::string message;
  std::string remedy;
};

// Whether a run would not start.
bool stops(const std::vector<Problem>& problems);

// `facts`: of every rank, in their order. `device` and `communication` as the config has them: "auto", "cuda", ...
std::vector<Problem> find_problems(const std::vector<Json>& facts, const std::string& device,
                                   const std::string& communication);

// Adds the problem that the run directory's file system has no room for a run's records and a checkpoint of so many
// bytes, or not for the two that it holds while one takes the place of another. `first`: the facts of rank 0.
void add_room_problem(const Json& first, std::int64_t checkpoint_bytes, std::vector<Problem>& problems);

}  // namespace trainctl
