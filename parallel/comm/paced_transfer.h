// A transfer between some ranks while the others wait for it: in rounds, so that every rank knows that it makes
// progress. Each piece has the deadline of all waits for other ranks; the whole transfer may take longer.
#pragma once

#include <atomic>

#include "core/backend/communicator.h"

namespace trainctl {

class PacedTransfer {
 public:
  // The largest number of bytes of a piece.
  static constexpr std::int64_t piece_bytes = 8 << 20;

  // `cancels`: once it is true on any rank, all ranks throw in the same round; null: never. All parameters must outlive
  // the object.
  PacedTransfer(Communicator& ranks, Stream& stream, const std::atomic<bool>* cancels = nullptr)
      : ranks_(ranks), stream_(stream), cancels_(cancels) {}

  // Sends data to a rank that receives as many bytes. Between the calls of finish() only two ranks send and receive.
  // Throws Error{peer} if a piece does not arrive in time, CollectiveError{resource} if the transfer is cancelled.
  void send(View data, int peer);
  void receive(View data, int peer);
  // Called by the two ranks after a piece that they have exchanged in another way.
  void end_piece() { exchange(true); }
  // Returns when no rank sends or receives any more. All ranks must call this function; throws like send().
  void finish();

 private:
  bool exchange(bool is_busy);

  Communicator& ranks_;
  Stream& stream_;
  const std::atomic<bool>* cancels_;
};

}  // namespace trainctl
