// The ordered list of a rank's collectives, sends and receives, which follows from its program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/mesh.h"
#include "core/program/program.h"

namespace trainctl {

// One execution of an op that communicates, or that waits for one that does. The op is the program's.
struct Communication {
  enum class Kind { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, send, receive, wait };
  Kind kind = Kind::all_reduce;
  MeshAxis axis = MeshAxis::data;  // of a wait: that of what it waits for
  int ranks = 0;                   // along the axis, as the op states them; 0 where it states none
  int peer = -1;           // along the axis: to or from whom a send or receive is, the root of a broadcast; else -1
  std::int64_t count = 0;  // elements that the communicator is given: the whole of what is gathered or scattered
  DType dtype = DType::float32;
  bool asynchronous = false;
  int awaited = -1;  // of a wait: the place in the list of the asynchronous communication whose end it waits for
  const Op* op = nullptr;
  ScheduleItem item;  // in which it runs

  bool is_collective() const { return kind < Kind::send; }
};

// The communications of a program in the order of its schedule. The program outlives them. As in the executor, a wait
// is for the latest communication before it that has made its input. Throws Error{internal}, which names op and config
// line, where there is none, or where nothing waits for an asynchronous communication: a defect of the strategy that
// made the program.
std::vector<Communication> communications_of(const Program& program);

// "all_reduce 'bucket 1' in backward of 'train 64'", with the micro-batch where the program has several.
std::string describe(const Program& program, const Communication& communication);

}  // namespace trainctl
