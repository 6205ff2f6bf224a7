// Communicator: the collectives between the ranks of one mesh axis. Declared here, implemented in parallel/comm.
//
// All ranks of a communicator make the same calls in the same order with equal counts and dtypes. Calls are
// asynchronous: they queue on the stream and return; the caller orders them and waits for them with events. After a
// missed deadline, a lost peer or an abort by one rank, no communicator of this rank can be used any more: the stream's
// next synchronize() throws Error{peer}, and the process must end by abort() without another collective.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/backend/attendance.h"
#include "core/backend/memory.h"
#include "core/backend/stream.h"
#include "core/tensor/view.h"

namespace trainctl {

// How the values of the ranks become one value.
enum class Reduction { sum, minimum, maximum };

class Communicator {
 public:
  virtual ~Communicator() = default;  // frees local resources only; calls no collective and throws no exception

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;  // "solo", "threads", "mpi", ...
  // Whether calls of this communicator can be part of a Recording.
  virtual bool recordable() const = 0;
  // Whether calls of this communicator may run at the same time as calls of other communicators. If not, a rank runs
  // the calls of all its communicators on one stream.
  virtual bool runs_beside_others() const { return true; }

  // Allocates zeroed memory in which this communicator reduces fastest, such as a window that the ranks of a host
  // share. All ranks must call this function, with the same number of bytes. Throws Error{resource}.
  virtual Memory allocate(std::int64_t bytes) = 0;

  // Reduces data over the ranks, in place. The order of a sum depends on the rank numbers alone, so that all ranks get
  // the same bits.
  virtual void all_reduce(View data, Reduction reduction, Stream& stream) = 0;
  // data holds size() equal shards; afterwards shard rank() holds the reduced values, the other shards are unspecified.
  virtual void reduce_scatter(View data, Reduction reduction, Stream& stream) = 0;
  // data holds size() equal shards, and shard rank() is the shard of this rank; afterwards every rank holds all shards.
  virtual void all_gather(View data, Stream& stream) = 0;
  // send and receive hold size() equal shards each; shard i of send goes to rank i.
  virtual void all_to_all(View send, View receive, Stream& stream) = 0;
  virtual void broadcast(View data, int root, Stream& stream) = 0;
  virtual void send(View data, int peer, Stream& stream) = 0;
  virtual void receive(View data, int peer, Stream& stream) = 0;
  virtual void barrier(Stream& stream) = 0;

  // The numbers of this communicator's ranks among all ranks of the run, by rank, for the flight record; empty:
  // unknown.
  virtual std::vector<int> world_ranks() const { return {}; }
  // Describes the next call in the rank's flight record, for example "all_reduce of bucket 3 (conv5 ... fc1)". The text
  // must exist until that call has run. Communicators that do not write to the record ignore it.
  virtual void describe_next(std::string_view) {}
  // States in the flight record that all calls are made by a thread beside the training, which saves checkpoints. Must
  // be called before the first call.
  virtual void set_background() {}

  // Returns whether the value is true on all ranks. All ranks must call this function. It waits for them, uses no
  // device and no stream, and throws Error{peer} if a rank does not come. The default exchanges the values in host
  // memory.
  virtual bool true_on_all(bool value);

  // The largest message, in bytes, that a rank should exchange on its compute thread, in turn with computations: a send
  // of that size does not wait for its receive, and a second thread would take the rank's only core from the
  // computation. 0: all messages are exchanged on a separate thread.
  virtual std::int64_t bytes_in_turn() const { return 0; }

  // Ranks with the same color form a new communicator, ordered by key, which shares the attendance of this
  // communicator. All ranks must call this function.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  // The deadline of this communicator's waits, and the check of which ranks still answer.
  virtual Attendance& attendance() = 0;

  // Ends the peers' processes and then this process with the exit code; does not return.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

}  // namespace trainctl
