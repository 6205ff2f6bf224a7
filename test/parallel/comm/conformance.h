// What every communicator must do: a list of cases, run on each implementation and number of ranks.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"

namespace trainctl::conformance {

// What a rank brings: its communicator, the backend whose memory that works on, and the stream for its calls.
struct Subject {
  Communicator& communicator;
  Backend& backend;
  Stream& stream;
};

// A case is called by every rank and throws where something is wrong: the assertions of the test framework are not made
// for several threads.
struct Case {
  std::string name;
  void (*run)(const Subject& subject);
};

const std::vector<Case>& cases();

inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("not so: " + what);
}

}  // namespace trainctl::conformance
