// Communicator: the collectives between the ranks of one mesh axis. Declared here, implemented in parallel/comm.
//
// All ranks of a communicator make the same calls in the same order with equal counts and dtypes. Calls are
// asynchronous: they queue on the stream and return; the caller orders and waits with events. A missed deadline, a lost
// peer or an abort by one rank makes all communicators of this rank dead: the stream's next synchronize() throws
// Error{peer}, and the process must end by abort() without another collective.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/backend/attendance.h"
#include "core/backend/memory.h"
#include "core/backend/stream.h"
#include "core/tensor/view.h"

namespace trainctl {

enum class Reduction { sum, minimum, maximum };

class Communicator {
 public:
  virtual ~Communicator() = default;  // frees local resources only: no collective, no exception

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;  // "solo", "threads", "mpi", ...
  // Whether calls of this communicator can be part of a Recording.
  virtual bool recordable() const = 0;

  // Allocates zeroed memory in which this communicator reduces fastest (a window shared by the ranks of a host, say).
  // Collective: every rank asks for the same number of bytes. Throws Error{resource}.
  virtual Memory allocate(std::int64_t bytes) = 0;

  // Reduces data over the ranks, in place. The order of the sum is fixed by rank, so that all ranks get the same bits.
  virtual void all_reduce(View data, Reduction reduction, Stream& stream) = 0;
  // data holds size() equal parts; afterwards part rank() holds the reduced values, the other parts are unspecified.
  virtual void reduce_scatter(View data, Reduction reduction, Stream& stream) = 0;
  // data holds size() equal parts, of which part rank() is this rank's; afterwards every rank holds all parts.
  virtual void all_gather(View data, Stream& stream) = 0;
  // send and receive hold size() equal parts each; part i of send goes to rank i.
  virtual void all_to_all(View send, View receive, Stream& stream) = 0;
  virtual void broadcast(View data, int root, Stream& stream) = 0;
  virtual void send(View data, int peer, Stream& stream) = 0;
  virtual void receive(View data, int peer, Stream& stream) = 0;
  virtual void barrier(Stream& stream) = 0;

  // The size up to which a rank does best to exchange messages between its computations, on the thread that computes: a
  // send of so many bytes ends without its receive, and a thread beside would take the rank's only core from the
  // computation. 0: messages travel beside.
  virtual std::int64_t bytes_in_turn() const { return 0; }

  // Ranks with the same color form a new communicator, ordered by key, with the same attendance. Collective.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  // The deadline of its waits, and what the ranks know of each other's presence.
  virtual Attendance& attendance() = 0;

  // Ends the peers' processes and then this process with the exit code; does not return.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

}  // namespace trainctl
