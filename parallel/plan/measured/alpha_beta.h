// The alpha-beta model of communication: a latency and a time per byte, fitted to measurements.
#pragma once

#include <vector>

namespace trainctl {

// A number of bytes and the measured time of its communication.
struct TimedSize {
  double bytes = 0;
  double seconds = 0;
};

// Seconds as a piecewise linear function of bytes: Hockney's model, alpha + beta * bytes, with its own alpha and beta
// for each range of sizes, since caches and protocols change with the size.
class AlphaBeta {
 public:
  AlphaBeta() = default;
  // Fits the smallest number of pieces, at most three, whose relative error is at most 5 % for every size; each fit
  // minimizes the sum of the squares of the relative errors. `sizes`: at least one, in ascending order.
  explicit AlphaBeta(const std::vector<TimedSize>& sizes);

  double seconds(double bytes) const;
  // Returns the seconds for 0 bytes.
  double latency() const { return seconds(0); }

  // A line for sizes from `begin` to `end`, in bytes. A line from the end of a piece to the start of the next joins
  // them; the last piece continues to infinity.
  struct Piece {
    double begin = 0, end = 0;
    double alpha = 0, beta = 0;

    double at(double bytes) const { return alpha + beta * bytes; }
  };
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
};

}  // namespace trainctl
