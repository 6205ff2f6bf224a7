// Divides the pairs of ranks into rounds, so that every two ranks are a pair once: the circle method for tournaments.
#pragma once

namespace trainctl {

// Returns the number of rounds for `count` ranks. In a round each rank is in at most one pair.
constexpr int rounds_of(int count) { return count + count % 2 - 1; }

// Returns the rank with which rank `own` is a pair in a round; a number of at least `count` if there is none.
constexpr int opponent(int own, int round, int count) {
  const int circle = rounds_of(count);  // number of ranks on the circle; one rank stays in the middle
  if (own == circle) return round;
  const int other = (2 * round - own + 2 * circle) % circle;
  return other == own ? circle : other;
}

}  // namespace trainctl
