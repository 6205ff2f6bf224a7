// What every communicator must do: a list of cases, run on each implementation and number of ranks.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "core/backend/communicator.h"

namespace trainctl::conformance {

// A case is called by every rank with its communicator and throws where something is wrong: the assertions of the test
// framework are not made for several threads.
struct Case {
  std::string name;
  void (*run)(Communicator& communicator);
};

const std::vector<Case>& cases();

inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("not so: " + what);
}

}  // namespace trainctl::conformance
