// Runs of which one rank is stopped as a hanging host stops it: without a word.
#pragma once

#include <string>
#include <vector>

#include "test/support/command.h"

namespace trainctl::test {

struct StuckRun {
  int ranks = 2;
  std::vector<std::string> settings;  // of --set
  int stopped = 0;                    // the rank that is stopped
  int step = 2;                       // after which it is stopped
  std::vector<std::string> more;      // arguments
  std::vector<std::string> variables;
};

// A config with validation and checkpoints every few steps that trains until it is ended, in a file in the folder.
std::string stuck_config(const Folder& folder);

// Runs all of them, some at a time, and stops a rank of each. What went otherwise than it should: each run ends within
// the timeout and a few seconds, with exit code 5 and an error that names the stopped rank and no other, and leaves no
// process. Empty where nothing did.
std::vector<std::string> problems_of(const Folder& folder, const std::vector<StuckRun>& runs);

}  // namespace trainctl::test
