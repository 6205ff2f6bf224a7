// The exceptions of the program: every failure is an Error with a kind (which decides the exit code), the location of
// its cause, a message and a remedy.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// The kind of a failure, which decides the exit code of the process (docs/commands.md#exit-codes).
enum class ErrorKind {
  answer_is_no,  // 1: a verification failed
  internal,      // 1: a bug in trainctl
  config,        // 2: the command line or the config is wrong; nothing was started
  data,          // 3: data or a checkpoint cannot be read
  diverged,      // 4: NaN or Inf in training
  peer,          // 5: a peer or the network failed, replicas differ, or a deadline passed
  resource,      // 6: memory, disk or a device ran out
  stopped,       // 75: stopped on request after writing a checkpoint
  interrupted,   // 130: stopped immediately by a second request
};

// The exit code of a process that ends with an error of this kind.
int exit_code(ErrorKind kind);

// The location of a value in a text file. Line and column count from 1; 0 means unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;

  bool known() const { return line > 0; }
  bool operator==(const SourceLocation&) const = default;
};

// Returns text such as "mnist.yaml:14:5", the file name alone if the line is unknown, or "" if the location is unknown.
std::string to_string(const SourceLocation& location);

// One error in a config: its location and message, and optionally a related location. `related` explains the related
// location and may be empty.
struct Diagnostic {
  SourceLocation location;
  std::string message;
  SourceLocation related_location;
  std::string related;

  bool operator==(const Diagnostic&) const = default;
};

// Returns text such as "mnist.yaml:14:5: conv2d 'c1': kernel 5 exceeds input 4 (from 'pool2' at 12:5)".
std::string to_string(const Diagnostic& diagnostic);

// The base class of all exceptions of the program. what() is the whole text for the user: location, message and remedy.
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

// An error that all ranks of a run throw together, at the same step: one rank reports the error, and all ranks end in
// an orderly way.
class CollectiveError : public Error {
 public:
  using Error::Error;
};

// All errors of a config together; what() has one line for each error.
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
