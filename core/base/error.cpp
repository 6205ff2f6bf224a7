// The texts and exit codes of errors.
#include "core/base/error.h"

#include <utility>

#include "core/base/checked.h"

namespace trainctl {
namespace {

// Replaces NUL characters, at which what() would end the text.
std::string without_nul(std::string text) {
  for (std::size_t at = 0; (at = text.find('\0', at)) != std::string::npos;) text.replace(at, 1, "\\x00");
  return text;
}

std::string compose(const SourceLocation& location, std::string_view message, std::string_view remedy) {
  std::string text = to_string(location);
  if (!text.empty()) text += ": ";
  text += message;
  if (!remedy.empty()) {
    text += message.ends_with('?') ? " " : "; ";
    text += remedy;
  }
  return without_nul(std::move(text));
}

std::string join(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += to_string(diagnostic);
  }
  return text;
}

}  // namespace

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::answer_is_no:
    case ErrorKind::internal:
      return 1;
    case ErrorKind::config:
      return 2;
    case ErrorKind::data:
      return 3;
    case ErrorKind::diverged:
      return 4;
    case ErrorKind::peer:
      return 5;
    case ErrorKind::resource:
      return 6;
    case ErrorKind::stopped:
      return 75;
    case ErrorKind::interrupted:
      return 130;
  }
  return 1;
}

std::string to_string(const SourceLocation& location) {
  if (!location.known()) return location.file;
  std::string text = location.file.empty() ? std::string() : location.file + ":";
  text += std::to_string(location.line);
  if (location.column > 0) text += ":" + std::to_string(location.column);
  return text;
}

std::string to_string(const Diagnostic& diagnostic) {
  std::string text = compose(diagnostic.location, diagnostic.message, {});
  if (diagnostic.related.empty() && !diagnostic.related_location.known()) return text;
  text += " (" + diagnostic.related;
  if (diagnostic.related_location.known()) {
    SourceLocation shown = diagnostic.related_location;
    if (shown.file == diagnostic.location.file) shown.file.clear();
    text += (diagnostic.related.empty() ? "at " : " at ") + to_string(shown);
  }
  return text + ")";
}

Error::Error(ErrorKind kind, std::string_view message, std::string_view remedy)
    : Error(kind, SourceLocation{}, message, remedy) {}

Error::Error(ErrorKind kind, const SourceLocation& location, std::string_view message, std::string_view remedy)
    : std::runtime_error(compose(location, message, remedy)), kind_(kind), location_(location) {}

ConfigError::ConfigError(std::vector<Diagnostic> diagnostics)
    : Error(ErrorKind::config, join(diagnostics)), diagnostics_(std::move(diagnostics)) {}

OverflowError::OverflowError()
    : Error(ErrorKind::config, "a size does not fit into 64 bits", "look for a number that is far too large") {}

void throw_overflow() { throw OverflowError(); }

void require(bool condition, std::string_view what) {
  if (!condition) throw Error(ErrorKind::internal, "internal error: " + std::string(what));
}

}  // namespace trainctl
