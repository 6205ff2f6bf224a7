// Messages between the processes of one host, through rings of memory that the two ranks of a message share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/backend/attendance.h"
#include "parallel/comm/call.h"

namespace trainctl {

// A send copies its data into the ring and ends as soon as the ring holds it, so that the sender goes on while the
// receiver still computes; what is larger than the ring flows through it. A rank that waits sleeps, and takes no time
// from its own computation.
class HostMessages {
 public:
  // Bytes of zeroed, shared memory that each rank provides for a group of so many ranks.
  static std::int64_t base_bytes(int ranks);

  // A send of so many bytes ends without its receive while the receiver is no more than a few messages behind.
  static std::int64_t buffered_bytes();

  // `bases`: that memory of every rank, at its address in this process. `world_ranks`: the ranks' numbers in messages.
  HostMessages(int rank, std::vector<std::byte*> bases, std::vector<int> world_ranks, Attendance& attendance);
  ~HostMessages();
  HostMessages(const HostMessages&) = delete;
  HostMessages& operator=(const HostMessages&) = delete;

  // Sends or receives `call.data`; `peer` is a rank of the group. Throws Error{peer} after the deadline or when the
  // peer has left, Error{internal} where sizes differ, Error{resource} without memory for a ring.
  void send(const Call& call, int peer);
  void receive(const Call& call, int peer);

  // Marks this rank as gone: the waits of the others end with Error{peer}. A failed message does so.
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
  std::vector<Mapped> sending_, receiving_;  // by peer
};

}  // namespace trainctl
