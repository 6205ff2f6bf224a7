// The alpha-beta model of communication: a latency, and a time for each byte, fitted to what was measured.
#pragma once

#include <vector>

namespace trainctl {

// The time of a communication of so many bytes.
struct TimedSize {
  double bytes = 0;
  double seconds = 0;
};

// Seconds as a piecewise linear function of bytes (Hockney's model: alpha + beta * bytes, of which each range of sizes
// has its own: caches and protocols bend the curve).
class AlphaBeta {
 public:
  AlphaBeta() = default;
  // Fits as few pieces as come within a twentieth of every size, three at most, so that the sum of the squares of the
  // relative errors is least. `sizes` grow; there must be one at least.
  explicit AlphaBeta(const std::vector<TimedSize>& sizes);

  double seconds(double bytes) const;
  // Of no bytes.
  double latency() const { return seconds(0); }

  // A line for sizes from `begin` to `end`, in bytes; between two pieces another line joins their ends, and the last
  // one goes on.
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
