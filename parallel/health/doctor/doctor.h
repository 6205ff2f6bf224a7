// The doctor: gathers information about the machines of a run, tests them, finds problems, and reports all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"

namespace trainctl {

class Backend;
class Communicator;
class NcclLogCapture;
class Stream;
class World;
struct RankContext;

// Returns the information about every rank on rank 0, in the order of ranks, with the fields of info.cpp; empty on the
// other ranks. Missing values are recorded as missing and do not throw an error. `run_directory`: the run directory of
// rank 0; a temporary file is written to its parent folder. All ranks must call this function.
std::vector<Json> gather_info(const std::string& run_directory, const RankContext& context, Stream& stream);

// Runs a small dense product and a small convolution and checks their results. Throws Error{resource}, which names the
// op with a wrong result, and errors of the device's libraries.
void try_kernels(Backend& backend);

// Measures all-reduces of 4 KiB and of 16 MiB between the first ranks of every two hosts. Returns a list of {hosts: [a,
// b], small_seconds, large_seconds, large_bytes} on rank 0; the list is empty on the other ranks and if there is only
// one host. Pairs without a common host are measured at the same time. All ranks must call this function.
Json measure_network(World& world, Stream& stream);

struct Problem {
  bool stops_a_run = false;  // false: it makes a run slower, or is only a note
  std::string where;         // a host, "rank 3 on node2", or "" for all hosts
  std::string message;
  std::string remedy;
};

// Lets NCCL connect the ranks for a large all-reduce. On rank 0, adds to the information about each rank the field
// "nccl": the links that NCCL's log names (nccl/choices.h), or why they are not shown. Returns the slow choices, on
// rank 0 only. `capture`: exists since before NCCL's first call in this process; `gpus`: NCCL's communicator of all
// ranks. All ranks must call this function. Throws errors of the communicator.
std::vector<Problem> add_nccl_choices(const NcclLogCapture& capture, Communicator& gpus, Backend& backend, World& world,
                                      Stream& host, std::vector<Json>& info);

// Returns whether a problem prevents a run from starting.
bool stops(const std::vector<Problem>& problems);

// Finds problems. `info`: the information about every rank, in the order of ranks. `device` and `communication` as in
// the config: "auto", "cuda", ...
std::vector<Problem> find_problems(const std::vector<Json>& info, const std::string& device,
                                   const std::string& communication);

// Adds a problem if the file system of the run directory has too little space for the records of a run and a checkpoint
// of `checkpoint_bytes`, or for two checkpoints, since both exist while a new one replaces an old one. `first`: the
// information about rank 0.
void add_space_problem(const Json& first, std::int64_t checkpoint_bytes, std::vector<Problem>& problems);

// Returns the report as one line of JSON: {ok, ranks: [info...], problems: [{error, where, message, remedy}...]}.
std::string doctor_json(const std::vector<Json>& info, const std::vector<Problem>& problems);

// Returns a report with one more problem.
std::string with_problem(const std::string& report, const Problem& problem);

// Returns the report as a text: a paragraph for each host, a table of all GPUs, and the problems.
std::string findings_text(const std::vector<Json>& info, const std::vector<Problem>& problems);

// Returns NCCL's choices as tables, and why choices are not shown; "" if NCCL does not connect the ranks.
std::string nccl_text(const std::vector<Json>& info);

// Returns a text with the problems after the first `shown`, and whether a run would start.
std::string verdict_text(const std::vector<Problem>& problems, std::size_t shown);

}  // namespace trainctl
