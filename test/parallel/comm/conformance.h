// The requirements of every communicator: a list of cases, run on each implementation and number of ranks.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"

namespace trainctl::conformance {

// The objects of a rank: its communicator, the backend that owns the memory, and the stream for its calls.
struct Subject {
  Communicator& communicator;
  Backend& backend;
  Stream& stream;
};

// A case is called by every rank and throws if a check fails, since the assertions of the test framework do not support
// several threads.
struct Case {
  std::string name;
  void (*run)(const Subject& subject);
};

const std::vector<Case>& cases();

inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("failed: " + what);
}

}  // namespace trainctl::conformance
