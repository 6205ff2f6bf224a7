// Makes an Error of the exit code and the messages of a child.
#include "run/failed_child.h"

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/host/child_run.h"

namespace trainctl {
namespace {

ErrorKind kind_of(int code) {
  for (const ErrorKind kind : {ErrorKind::config, ErrorKind::data, ErrorKind::diverged, ErrorKind::peer,
                               ErrorKind::resource, ErrorKind::stopped, ErrorKind::interrupted}) {
    if (exit_code(kind) == code) return kind;
  }
  return ErrorKind::internal;
}

std::string trimmed(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n");
  return text.substr(0, end == std::string::npos ? 0 : end + 1);
}

}  // namespace

void throw_failure(const std::string& what, const ChildEnd& end) {
  const std::string errors = trimmed(end.errors);
  throw Error(kind_of(end.exit_code),
              format("{} failed: {}", what, errors.empty() ? format("exit code {}", end.exit_code) : errors));
}

}  // namespace trainctl
