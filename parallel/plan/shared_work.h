// Simulates work that shares capacities: a fluid model of processors and links. Its clock moves from one end of work to
// the next.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

namespace trainctl {

class SharedWork {
 public:
  explicit SharedWork(int capacities) : capacities_(static_cast<std::size_t>(capacities)) {}

  // Begins a piece of work at now() that takes `seconds` alone and uses `share` (more than 0, at most 1) of each of the
  // capacities. If the shares of a capacity add up to more than 1, each piece that uses it slows down in proportion.
  // Returns the number of the piece, which may be reused after its end.
  int begin(double seconds, double share, std::vector<int> capacities);
  // Moves the clock to the next end; returns the number of the piece that ends, or -1 if no work is left. Pieces that
  // end at the same time are returned in the order in which their ends were predicted.
  int next();
  double now() const { return now_; }
  // The number of pieces that have ended.
  std::int64_t ended() const { return ended_; }

 private:
  struct Piece {
    double left = 0;  // seconds of work that are left
    double rate = 0;
    double since = 0;  // time at which `left` was computed
    double share = 1;
    std::int64_t predicted_end = -1;  // number of the valid End; -1: the piece has ended
    std::vector<int> capacities;
  };
  struct Capacity {
    double load = 0;  // the sum of its pieces' shares
    std::vector<int> pieces;
  };
  struct End {
    double time = 0;
    std::int64_t number = 0;
    int piece = 0;
    bool operator>(const End& other) const { return time != other.time ? time > other.time : number > other.number; }
  };

  void update_rate(int piece);
  void update_rates(const std::vector<int>& capacities);
  Piece& piece(int number) { return pieces_[static_cast<std::size_t>(number)]; }
  Capacity& capacity(int number) { return capacities_[static_cast<std::size_t>(number)]; }

  double now_ = 0;
  std::int64_t ended_ = 0;
  std::int64_t predictions_ = 0;
  std::vector<Piece> pieces_;
  std::vector<int> free_;
  std::vector<Capacity> capacities_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace trainctl
