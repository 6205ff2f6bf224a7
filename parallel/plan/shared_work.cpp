// Pieces of work whose rates change with what is beside them.
#include "parallel/plan/shared_work.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace trainctl {

int SharedWork::begin(double seconds, double share, std::vector<int> capacities) {
  require(seconds >= 0 && share > 0 && share <= 1, "work takes time, and a part of what it runs on");
  if (free_.empty()) {
    free_.push_back(static_cast<int>(pieces_.size()));
    pieces_.emplace_back();
  }
  const int number = free_.back();
  free_.pop_back();
  Piece& begun = piece(number);
  begun = {seconds, 0, now_, share, -1, std::move(capacities)};
  for (const int c : begun.capacities) {
    capacity(c).load += share;
    capacity(c).pieces.push_back(number);
  }
  if (begun.capacities.empty()) {
    pace(number);
  } else {
    pace_all(begun.capacities);
  }
  return number;
}

int SharedWork::next() {
  while (!ends_.empty()) {
    const End end = ends_.top();
    ends_.pop();
    Piece& ending = piece(end.piece);
    if (ending.foreseen != end.number) continue;  // its rate has changed since
    now_ = end.time;
    ++ended_;
    ending.foreseen = -1;
    const std::vector<int> capacities = std::exchange(ending.capacities, {});
    for (const int c : capacities) {
      std::vector<int>& pieces = capacity(c).pieces;
      pieces.erase(std::find(pieces.begin(), pieces.end(), end.piece));
      capacity(c).load = 0;  // summed anew: nothing is left of rounding
      for (const int other : pieces) capacity(c).load += piece(other).share;
    }
    free_.push_back(end.piece);
    pace_all(capacities);
    return end.piece;
  }
  return -1;
}

void SharedWork::pace_all(const std::vector<int>& capacities) {
  for (const int c : capacities) {
    for (const int p : capacity(c).pieces) pace(p);
  }
}

// Foresees the end of a piece at its present rate.
void SharedWork::pace(int number) {
  Piece& changed = piece(number);
  double rate = 1;
  for (const int c : changed.capacities) rate = std::min(rate, 1 / std::max(capacity(c).load, 1.0));
  if (rate == changed.rate) return;
  changed.left = std::max(changed.left - changed.rate * (now_ - changed.since), 0.0);
  changed.since = now_;
  changed.rate = rate;
  changed.foreseen = foreseen_++;
  ends_.push({now_ + changed.left / rate, changed.foreseen, number});
}

}  // namespace trainctl
