// Messages between the processes of one host, through ring buffers that sender and receiver share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/backend/attendance.h"
#include "parallel/comm/call.h"

namespace trainctl {

// A send copies its data into the ring and ends as soon as the ring holds all of it, so that the sender continues while
// the receiver still computes; data larger than the ring is streamed through it. A waiting rank sleeps, so that it does
// not slow down its own computation.
class HostMessages {
 public:
  // Size of the zeroed, shared memory that each rank of a group with `ranks` ranks provides.
  static std::int64_t base_bytes(int ranks);

  // A send of up to this many bytes returns before its receive, as long as only a few messages are pending.
  static std::int64_t buffered_bytes();

  // `bases`: the base memory of every rank, at its address in this process. `world_ranks`: the ranks' numbers for
  // messages.
  HostMessages(int rank, std::vector<std::byte*> bases, std::vector<int> world_ranks, Attendance& attendance);
  ~HostMessages();
  HostMessages(const HostMessages&) = delete;
  HostMessages& operator=(const HostMessages&) = delete;

  // Sends or receives `call.data`; `peer` is a rank of the group. Throws Error{peer} after the deadline or if the peer
  // has left, Error{internal} if the sizes of send and receive differ, Error{resource} if there is no memory for a
  // ring.
  void send(const Call& call, int peer);
  void receive(const Call& call, int peer);

  // Marks this rank as left, so that the waits of the other ranks end with Error{peer}. A failed send or receive calls
  // it.
  void leave();

 private:
  struct Ring;
  struct Block;
  struct Mapped;
  class MessageWait;

  Block& block(int rank) const;
  Ring& ring(int from, int to) const;
  void make_ring(Ring& ring, Mapped& mapped, std::int64_t bytes);
  void open_ring(const Ring& ring, Mapped& mapped) const;
  void write(Ring& ring, Mapped& mapped, const void* data, std::int64_t bytes, MessageWait& wait);
  void read(Ring& ring, Mapped& mapped, void* data, std::int64_t bytes, MessageWait& wait);

  int rank_;
  std::vector<std::byte*> bases_;
  std::vector<int> world_ranks_;
  Attendance& attendance_;
  std::vector<Mapped> sending_, receiving_;  // indexed by peer
};

}  // namespace trainctl
