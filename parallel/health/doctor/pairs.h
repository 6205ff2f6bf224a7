// Rounds in which each two players meet once: the circle method for tournaments.
#pragma once

namespace trainctl {

// The number of rounds for `count` players, of which each plays at most once in a round.
constexpr int rounds_of(int count) { return count + count % 2 - 1; }

// Returns the opponent of player `own` in a round; a number of at least `count` if the player pauses.
constexpr int opponent(int own, int round, int count) {
  const int circle = rounds_of(count);  // number of players on the circle; one player stays in the middle
  if (own == circle) return round;
  const int other = (2 * round - own + 2 * circle) % circle;
  return other == own ? circle : other;
}

}  // namespace trainctl
