// The texts and exit codes of errors.
#include "core/base/error.h"

#include <utility>

#include "core/base/checked.h"

namespace trainctl {
namespace {

std::string compose(const Place& place, std::string_view message, std::string_view remedy) {
  std::string text = to_string(place);
  if (!text.empty()) text += ": ";
  text += message;
  if (!remedy.empty()) {
    text += "; ";
    text += remedy;
  }
  return text;
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

std::string to_string(const Place& place) {
  if (!place.known()) return place.file;
  std::string text = place.file.empty() ? std::string() : place.file + ":";
  text += std::to_string(place.line);
  if (place.column > 0) text += ":" + std::to_string(place.column);
  return text;
}

std::string to_string(const Diagnostic& diagnostic) {
  std::string text = compose(diagnostic.place, diagnostic.message, {});
  if (diagnostic.related.empty() && !diagnostic.related_place.known()) return text;
  text += " (" + diagnostic.related;
  if (diagnostic.related_place.known()) {
    Place shown = diagnostic.related_place;
    if (shown.file == diagnostic.place.file) shown.file.clear();
    text += (diagnostic.related.empty() ? "at " : " at ") + to_string(shown);
  }
  return text + ")";
}

Error::Error(ErrorKind kind, std::string_view message, std::string_view remedy)
    : Error(kind, Place{}, message, remedy) {}

Error::Error(ErrorKind kind, const Place& place, std::string_view message, std::string_view remedy)
    : std::runtime_error(compose(place, message, remedy)), kind_(kind), place_(place) {}

ConfigError::ConfigError(std::vector<Diagnostic> diagnostics)
    : Error(ErrorKind::config, join(diagnostics)), diagnostics_(std::move(diagnostics)) {}

OverflowError::OverflowError()
    : Error(ErrorKind::config, "a size is larger than 64 bits can count", "look for a number that is far too large") {}

void throw_overflow() { throw OverflowError(); }

void require(bool condition, std::string_view what) {
  if (!condition) throw Error(ErrorKind::internal, "internal error: " + std::string(what));
}

}  // namespace trainctl
