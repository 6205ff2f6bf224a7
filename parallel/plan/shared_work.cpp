// Updates the rates of pieces of work when others begin or end.
#include "parallel/plan/shared_work.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace trainctl {

int SharedWork::begin(double seconds, double share, std::vector<int> capacities) {
  require(seconds >= 0 && share > 0 && share <= 1, "work has negative seconds, or a share that is not in (0, 1]");
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
    update_rate(number);
  } else {
    update_rates(begun.capacities);
  }
  return number;
}

int SharedWork::next() {
  while (!ends_.empty()) {
    const End end = ends_.top();
    ends_.pop();
    Piece& ending = piece(end.piece);
    if (ending.predicted_end != end.number) continue;  // its rate has changed since this prediction
    now_ = end.time;
    ++ended_;
    ending.predicted_end = -1;
    const std::vector<int> capacities = std::exchange(ending.capacities, {});
    for (const int c : capacities) {
      std::vector<int>& pieces = capacity(c).pieces;
      pieces.erase(std::find(pieces.begin(), pieces.end(), end.piece));
      capacity(c).load = 0;  // summed again, so that no rounding errors accumulate
      for (const int other : pieces) capacity(c).load += piece(other).share;
    }
    free_.push_back(end.piece);
    update_rates(capacities);
    return end.piece;
  }
  return -1;
}

void SharedWork::update_rates(const std::vector<int>& capacities) {
  for (const int c : capacities) {
    for (const int p : capacity(c).pieces) update_rate(p);
  }
}

// Sets the rate of a piece from the present loads and predicts its end.
void SharedWork::update_rate(int number) {
  Piece& changed = piece(number);
  double rate = 1;
  for (const int c : changed.capacities) rate = std::min(rate, 1 / std::max(capacity(c).load, 1.0));
  if (rate == changed.rate) return;
  changed.left = std::max(changed.left - changed.rate * (now_ - changed.since), 0.0);
  changed.since = now_;
  changed.rate = rate;
  changed.predicted_end = predictions_++;
  ends_.push({now_ + changed.left / rate, changed.predicted_end, number});
}

}  // namespace trainctl
