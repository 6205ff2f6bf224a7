// Which compute copies hold what the weights are now. Programs share copies of equal layout.
#pragma once

#include <cstddef>
#include <vector>

#include "core/compile/placed_program.h"

namespace trainctl {

class FreshCopies {
 public:
  // All are stale.
  FreshCopies(const std::vector<PlacedProgram>& programs);

  // Of a program's copy, by its number in PlacedProgram::copies.
  bool is_fresh(int program, std::size_t copy) const { return fresh_[at(program, copy).place]; }
  void written(int program, std::size_t copy) { fresh_[at(program, copy).place] = true; }
  // The program ran a step: the weights that train have changed, and with them what its update writes.
  void trained(int program);
  // All weights have changed.
  void changed();

 private:
  struct Copy {
    std::size_t place = 0;  // equal where programs share it
    bool trains = false;
    bool updated = false;
  };
  const Copy& at(int program, std::size_t copy) const { return copies_[static_cast<std::size_t>(program)][copy]; }

  std::vector<std::vector<Copy>> copies_;  // by program
  std::vector<char> fresh_;                // by place
};

}  // namespace trainctl
