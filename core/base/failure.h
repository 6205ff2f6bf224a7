// How a process, or a run of many processes, ended: converts an exception to an exit code and messages, and these to
// JSON.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace trainctl {

struct Failure {
  int exit_code = 0;
  std::string message = {};             // message for the user; empty after success
  std::vector<Diagnostic> errors = {};  // the single messages, with their locations where known

  bool operator==(const Failure&) const = default;
};

// Converts an exception to a failure. An exception caused by the user's files or numbers, the disk, the memory or a
// limit is never reported as an internal error, regardless of its type.
Failure failure_of(const std::exception_ptr& exception);

// The text of what() without the location at its beginning.
std::string without_location(const Error& error);

// {ok: false, errors: [{file, line, column, message, related}], exit_code} as one line. Always valid JSON.
std::string failure_json(const Failure& failure);

// The list of `errors` alone: writes it as one line of JSON, and reads such a line. Reading any other text returns an
// empty list.
std::string diagnostics_json(const std::vector<Diagnostic>& diagnostics);
std::vector<Diagnostic> read_diagnostics(const std::string& text);

}  // namespace trainctl
