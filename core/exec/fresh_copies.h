// Tracks which compute copies are equal to the current weights (fresh) and which are stale. Programs share copies of
// equal layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "core/compile/placed_program.h"

namespace trainctl {

// The offsets of the parameters that a training step changes by other ops than the optimizer's: those of teachers, and
// kernels that get their earlier values if the step is skipped.
std::set<std::int64_t> moved_parameters(const PlacedProgram& placed);

class FreshCopies {
 public:
  // All copies are stale at first.
  FreshCopies(const std::vector<PlacedProgram>& programs);

  // Returns whether a copy of a program is fresh, or records that the copy was written; `copy` is its index in
  // PlacedProgram::copies.
  bool is_fresh(int program, std::size_t copy) const { return fresh_[at(program, copy).number]; }
  void written(int program, std::size_t copy) { fresh_[at(program, copy).number] = true; }
  // Reports that the program ran a training step: copies of trained parameters are stale, except those that its update
  // writes.
  void trained(int program);
  // Reports that all weights have changed: all copies are stale.
  void changed();

 private:
  struct Copy {
    std::size_t number = 0;  // number in fresh_, equal for programs that share the copy
    bool trains = false;
    bool updated = false;
  };
  const Copy& at(int program, std::size_t copy) const { return copies_[static_cast<std::size_t>(program)][copy]; }

  std::vector<std::vector<Copy>> copies_;  // the copies of each program
  std::vector<char> fresh_;                // index: Copy::number
};

}  // namespace trainctl
