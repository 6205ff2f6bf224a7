// The ordered list of a rank's collectives, sends and receives, which follows from its program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/mesh.h"
#include "core/graph/ops/collectives.h"
#include "core/program/program.h"

namespace trainctl {

// One execution of an op that communicates, or that waits for one that does. The op is the program's.
struct Communication {
  enum class Kind { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, send, receive, wait };
  Kind kind = Kind::all_reduce;
  MeshAxis axis = MeshAxis::data;  // of a wait: that of what it waits for, as the channel
  Channel channel = Channel::forward;
  int ranks = 0;           // along the axis, as the op states them; 0 where it states none
  int peer = -1;           // along the axis: to or from whom a send or receive is, the root of a broadcast; else -1
  std::int64_t count = 0;  // elements that the communicator is given: the whole of what is gathered or scattered
  DType dtype = DType::float32;
  bool asynchronous = false;
  int awaited = -1;  // of a wait: the place in the list of the asynchronous communication whose end it waits for
  const Op* op = nullptr;
  ScheduleItem item;  // in which it runs

  bool is_collective() const { return kind < Kind::send; }
  // The communications of one lane, an axis and a channel, run one after the other.
  int lane() const { return channels * static_cast<int>(axis) + static_cast<int>(channel); }
};

inline constexpr int lanes = mesh_axes * channels;
inline MeshAxis axis_of(int lane) { return all_mesh_axes[lane / channels]; }

// The communications of a program in the order of its schedule. The program outlives them. As in the executor, a wait
// is for the latest communication before it that has made its input. Throws Error{internal}, which names op and config
// line, where there is none, or where nothing waits for an asynchronous communication: a defect of the strategy that
// made the program.
std::vector<Communication> communications_of(const Program& program);

// "all_reduce 'bucket 1' in backward of 'train 64'", with the micro-batch where the program has several.
std::string describe(const Program& program, const Communication& communication);

}  // namespace trainctl
