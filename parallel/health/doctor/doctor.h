// The doctor: the info that it gathers on the machines of a run, what it tries there, the problems that follow from
// the info, and its report of both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"

namespace trainctl {

class Backend;
class Stream;
class World;
struct RankContext;

// The info of every rank on rank 0, in their order, with the fields that are in info.cpp; nothing on the others. What
// is missing is a fact, and throws nothing. `run_directory` is rank 0's: a file is written for a moment where it would
// be made. Collective.
std::vector<Json> gather_info(const std::string& run_directory, const RankContext& context, Stream& stream);

// Runs a tiny dense product and a tiny convolution, and looks at their results. Throws Error{resource} that names the
// one that is wrong, and what the device's libraries throw.
void try_kernels(Backend& backend);

// All-reduces of 4 KiB and of 16 MiB between each two hosts, by the first rank of each: a list of {hosts: [a, b],
// small_seconds, large_seconds, large_bytes} on rank 0, empty on the others and where there is one host. Pairs that
// have no host in common are measured at the same time. Collective.
Json measure_network(World& world, Stream& stream);

struct Problem {
  bool stops_a_run = false;  // else it makes one slower, or is worth knowing
  std::string where;         // a host, "rank 3 on node2", or "" for all
  std::string message;
  std::string remedy;
};

// Whether a run would not start.
bool stops(const std::vector<Problem>& problems);

// `info`: of every rank, in their order. `device` and `communication` as the config has them: "auto", "cuda", ...
std::vector<Problem> find_problems(const std::vector<Json>& info, const std::string& device,
                                   const std::string& communication);

// Adds a problem if the file system of the run directory has too little space for the records of a run and a checkpoint
// of `checkpoint_bytes`, or for two checkpoints: while a new one replaces an old one, both are there. `first`: the
// info of rank 0.
void add_room_problem(const Json& first, std::int64_t checkpoint_bytes, std::vector<Problem>& problems);

// {ok, ranks: [info...], problems: [{error, where, message, remedy}...]}, a line.
std::string doctor_json(const std::vector<Json>& info, const std::vector<Problem>& problems);

// Such a line, with one more problem.
std::string with_problem(const std::string& report, const Problem& problem);

// A paragraph for each host, a table of the GPUs of all, and the problems.
std::string findings_text(const std::vector<Json>& info, const std::vector<Problem>& problems);

// The problems but the first `shown`, and whether a run would start.
std::string verdict_text(const std::vector<Problem>& problems, std::size_t shown);

}  // namespace trainctl
