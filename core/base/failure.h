// How a process, or a run of many processes, ended: the exit code and message that an exception leads to, and their
// JSON.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace trainctl {

struct Failure {
  int exit_code = 0;
  std::string message = {};             // for the user; empty after success
  std::vector<Diagnostic> errors = {};  // the messages with places, where the places are known

  bool operator==(const Failure&) const = default;
};

// Maps an exception to a failure. An exception that a file, a disk, memory, a limit or a number of the user's caused is
// never an internal error, whatever its type.
Failure failure_of(const std::exception_ptr& exception);

// The text of what() without the place at its beginning.
std::string without_place(const Error& error);

// {ok: false, errors: [{file, line, column, message, related}], exit_code} as one line. Always valid JSON.
std::string failure_json(const Failure& failure);

// Writes the entries of `errors` alone as one line of JSON, and reads such a line; any other text gives an empty list.
std::string diagnostics_json(const std::vector<Diagnostic>& diagnostics);
std::vector<Diagnostic> read_diagnostics(const std::string& text);

}  // namespace trainctl
