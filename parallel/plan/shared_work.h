// Work on capacities that it shares: a fluid model of processors and links, with a clock that moves from end to end.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

namespace trainctl {

class SharedWork {
 public:
  explicit SharedWork(int capacities) : capacities_(static_cast<std::size_t>(capacities)) {}

  // Begins a piece of work at now(): so many seconds of it when alone, with a share (more than 0, at most 1) of each of
  // the capacities. Where the shares at a capacity come to more than 1, each piece there gets as much less. Returns the
  // number of the piece, which is free again after its end.
  int begin(double seconds, double share, std::vector<int> capacities);
  // Moves the clock to the next end; returns the number of the piece that ends, -1 where nothing is under way. Equal
  // ends come in the order in which they were foreseen.
  int next();
  double now() const { return now_; }
  // How many ends there were so far.
  std::int64_t ended() const { return ended_; }

 private:
  struct Piece {
    double left = 0;  // seconds of work
    double rate = 0;
    double since = 0;  // when `left` was right
    double share = 1;
    std::int64_t foreseen = -1;  // the end that counts; -1: free
    std::vector<int> capacities;
  };
  struct Capacity {
    double load = 0;  // the sum of the shares
    std::vector<int> pieces;
  };
  struct End {
    double time = 0;
    std::int64_t number = 0;
    int piece = 0;
    bool operator>(const End& other) const { return time != other.time ? time > other.time : number > other.number; }
  };

  void pace(int piece);
  void pace_all(const std::vector<int>& capacities);
  Piece& piece(int number) { return pieces_[static_cast<std::size_t>(number)]; }
  Capacity& capacity(int number) { return capacities_[static_cast<std::size_t>(number)]; }

  double now_ = 0;
  std::int64_t ended_ = 0;
  std::int64_t foreseen_ = 0;
  std::vector<Piece> pieces_;
  std::vector<int> free_;
  std::vector<Capacity> capacities_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace trainctl
