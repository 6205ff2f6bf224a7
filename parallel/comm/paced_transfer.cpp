// Sends data in pieces, after each of which all ranks exchange whether they go on.
#include "parallel/comm/paced_transfer.h"

#include <algorithm>
#include <cstdint>

#include "core/base/error.h"

namespace trainctl {
namespace {

// What a rank reports in a round; the largest value counts.
enum State : std::int32_t { waits, is_busy, cancels };

template <class Exchange>
void for_pieces(View data, Exchange exchange) {
  const std::int64_t most = PacedTransfer::piece_bytes / size_of(data.dtype);
  for (std::int64_t first = 0; first < data.count; first += most) {
    exchange(data.slice(first, std::min(most, data.count - first)));
  }
}

}  // namespace

void PacedTransfer::send(View data, int peer) {
  for_pieces(data, [&](View piece) {
    ranks_.send(piece, peer, stream_);
    stream_.synchronize();
    exchange(true);
  });
}

void PacedTransfer::receive(View data, int peer) {
  for_pieces(data, [&](View piece) {
    ranks_.receive(piece, peer, stream_);
    stream_.synchronize();
    exchange(true);
  });
}

void PacedTransfer::finish() {
  while (exchange(false)) {
  }
}

// One round of all ranks. Returns whether any rank is busy.
bool PacedTransfer::exchange(bool busy) {
  const bool cancelled = cancels_ != nullptr && cancels_->load(std::memory_order_relaxed);
  std::int32_t state = cancelled ? cancels : busy ? is_busy : waits;
  ranks_.all_reduce({&state, DType::int32, 1}, Reduction::maximum, stream_);
  stream_.synchronize();
  if (state != cancels) return state == is_busy;
  throw CollectiveError(ErrorKind::resource, SourceLocation{}, "the transfer was given up, since the run ends");
}

}  // namespace trainctl
