// One error policy: every failure is an Error with a kind (the exit code), a place and what to do.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// The kind of a failure, and with it the exit code of the process (see interfaces: "Exit codes").
enum class ErrorKind {
  answer_is_no,  // 1: a verification failed
  internal,      // 1: a defect of trainctl itself
  config,        // 2: the command line or the config is wrong; nothing was started
  data,          // 3: data or a checkpoint cannot be read
  diverged,      // 4: NaN or Inf in training
  peer,          // 5: a peer or the network failed, replicas differ, or a deadline passed
  resource,      // 6: memory, disk or a device ran out
  stopped,       // 75: stopped on request after writing a checkpoint
  interrupted,   // 130: stopped at once by a second request
};

int exit_code(ErrorKind kind);

// The place of a value in a text; line and column count from 1, 0 means unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;

  bool known() const { return line > 0; }
  bool operator==(const SourceLocation&) const = default;
};

// "mnist.yaml:14:5", or the file alone, or "" where nothing is known.
std::string to_string(const SourceLocation& location);

// One finding about a config: where, what, and the other place involved (its `related` sentence may be empty).
struct Diagnostic {
  SourceLocation location;
  std::string message;
  SourceLocation related_location;
  std::string related;

  bool operator==(const Diagnostic&) const = default;
};

// "mnist.yaml:14:5: conv2d 'c1': kernel 5 exceeds input 4 (from 'pool2' at 12:5)".
std::string to_string(const Diagnostic& diagnostic);

// The exception that everything throws. `what()` is the whole text a user reads, remedy included.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string_view message, std::string_view remedy = {});
  Error(ErrorKind kind, const SourceLocation& location, std::string_view message, std::string_view remedy = {});

  ErrorKind kind() const { return kind_; }
  const SourceLocation& location() const { return location_; }

 private:
  ErrorKind kind_;
  SourceLocation location_;
};

// An error that all ranks of a run throw together, at the same step: one rank reports the error, and all ranks leave in
// order.
class CollectiveError : public Error {
 public:
  using Error::Error;
};

// All errors of a config at once; what() has one line for each.
class ConfigError : public Error {
 public:
  explicit ConfigError(std::vector<Diagnostic> diagnostics);

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

// Throws Error{internal} with the message `what` when an invariant of the program does not hold.
void require(bool condition, std::string_view what);

}  // namespace trainctl
