// The ordered list of the collectives, sends and receives of a rank's program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/mesh.h"
#include "core/program/program.h"

namespace trainctl {

// One execution of an op that communicates or waits for a communication. `op` points into the program.
struct Communication {
  enum class Kind { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, send, receive, wait };
  Kind kind = Kind::all_reduce;
  MeshAxis axis = MeshAxis::data;  // for a wait, the axis of the awaited communication
  int ranks = 0;                   // number of ranks along the axis for which the op was made; 0: any number
  int peer = -1;                   // rank along the axis: peer of a send or receive, root of a broadcast; otherwise -1
  std::int64_t count = 0;  // number of elements passed to the communicator, including all gathered or scattered ones
  DType dtype = DType::float32;
  bool asynchronous = false;
  int awaited = -1;  // for a wait, the index of the awaited communication in the list
  const Op* op = nullptr;
  ScheduleItem item;  // item of the schedule in which the op runs

  bool is_collective() const { return kind < Kind::send; }
};

// Returns the communications of a program, which must outlive them, in the order of its schedule. As in the executor, a
// wait is for the last earlier communication that wrote its input. Throws Error{internal}, which names the op and the
// line of the config, if there is no such communication, or if no wait follows an asynchronous communication. Such an
// error is a defect of the strategy that built the program.
std::vector<Communication> communications_of(const Program& program);

// Returns, for example, "all_reduce 'bucket 1' in backward of 'train 64'", with the micro-batch if the program has
// several.
std::string describe(const Program& program, const Communication& communication);

}  // namespace trainctl
