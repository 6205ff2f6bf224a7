// How a process, or a run of many, ended: what an exception comes to at the frame of a process, and how that is told.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace trainctl {

struct Failure {
  int exit_code = 0;
  std::string message = {};             // what the user is to read; empty after success
  std::vector<Diagnostic> errors = {};  // the same with places, where they are known

  bool operator==(const Failure&) const = default;
};

// The one place that maps exceptions. What a file, a disk, memory, a limit or a number of the user's causes is never an
// internal error, whoever threw it.
Failure failure_of(const std::exception_ptr& exception);

// What an error says, without the place that what() begins with.
std::string without_place(const Error& error);

// {ok: false, errors: [{file, line, column, message, related}], exit_code}, a line. Always valid JSON.
std::string failure_json(const Failure& failure);

// The entries of `errors` alone, in a line, and back; what is no such text gives none.
std::string diagnostics_json(const std::vector<Diagnostic>& diagnostics);
std::vector<Diagnostic> read_diagnostics(const std::string& text);

}  // namespace trainctl
