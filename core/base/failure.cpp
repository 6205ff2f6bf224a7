// Converts exceptions to failures, and failures to JSON.
#include "core/base/failure.h"

#include <cerrno>
#include <filesystem>
#include <ios>
#include <new>
#include <string_view>
#include <system_error>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/json_parse.h"
#include "core/base/utf8.h"

namespace trainctl {
namespace {

Failure failure(ErrorKind kind, const std::string& message) {
  return {exit_code(kind), message, {{SourceLocation{}, message, SourceLocation{}, ""}}};
}

bool is_shortage(const std::error_code& code) {
  if (code.category() != std::generic_category() && code.category() != std::system_category()) return false;
  for (int number : {ENOSPC, EDQUOT, ENOMEM, EMFILE, ENFILE, EFBIG, EROFS, EAGAIN, EIO}) {
    if (code.value() == number) return true;
  }
  return false;
}

Failure of_file(const std::filesystem::filesystem_error& error) {
  const bool shortage = is_shortage(error.code());
  const std::string path = error.path1().string();
  const std::string message = error.code().message();
  Failure result = failure(shortage ? ErrorKind::resource : ErrorKind::data,
                           path.empty() ? message : format("{}: {}", path, message));
  if (!path.empty()) result.errors = {{SourceLocation{path}, message, SourceLocation{}, ""}};
  return result;
}

Failure of_system(const std::system_error& error) {
  if (error.code() == std::errc::resource_unavailable_try_again) {
    return failure(ErrorKind::resource,
                   "no more threads can be started; raise the process limit (ulimit -u, or the container's), or "
                   "use fewer ranks or threads (data.workers)");
  }
  return failure(ErrorKind::resource, format("a system call failed: {}", error.code().message()));
}

// The exceptions of std::stoi, std::stod and similar functions have the function's name as their message.
bool is_number_error(const std::exception& error) { return std::string_view(error.what()).starts_with("sto"); }

Json related(const Diagnostic& found) {
  if (found.related.empty() && !found.related_location.known()) return nullptr;
  return {{"file", found.related_location.file},
          {"line", found.related_location.line},
          {"column", found.related_location.column},
          {"message", found.related}};
}

Json entries(const std::vector<Diagnostic>& diagnostics) {
  Json all = Json::array();
  for (const Diagnostic& found : diagnostics) {
    all.push_back({{"file", found.location.file},
                   {"line", found.location.line},
                   {"column", found.location.column},
                   {"message", found.message},
                   {"related", related(found)}});
  }
  return all;
}

SourceLocation read_location(const Json& json) {
  return {json.at("file").get<std::string>(), json.at("line").get<int>(), json.at("column").get<int>()};
}

Failure described(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const ConfigError& error) {
    return {exit_code(error.kind()), error.what(), error.diagnostics()};
  } catch (const Error& error) {
    return {exit_code(error.kind()), error.what(), {{error.location(), without_location(error), SourceLocation{}, ""}}};
  } catch (const std::bad_alloc&) {
    return failure(ErrorKind::resource, "memory ran out on the host; use a smaller batch or fewer ranks on it");
  } catch (const std::length_error&) {
    return failure(ErrorKind::resource,
                   "an allocation is larger than the memory of any host; use a smaller batch or network");
  } catch (const std::filesystem::filesystem_error& error) {
    return of_file(error);
  } catch (const std::ios_base::failure& error) {
    return failure(ErrorKind::data, format("a file cannot be read or written: {}", error.what()));
  } catch (const std::system_error& error) {
    return of_system(error);
  } catch (const std::overflow_error& error) {
    return failure(ErrorKind::config, format("a number is too large: {}", error.what()));
  } catch (const Json::exception& error) {
    return failure(ErrorKind::data, format("a file holds JSON of another form than expected: {}", json_problem(error)));
  } catch (const std::exception& error) {
    if (is_number_error(error)) return failure(ErrorKind::data, "a number in a file is too large or is not a number");
    return failure(ErrorKind::internal, format("internal error: {}", error.what()));
  } catch (...) {
    return failure(ErrorKind::internal, "internal error: an unknown exception");
  }
}

}  // namespace

std::string without_location(const Error& error) {
  const std::string text = error.what(), location = to_string(error.location()) + ": ";
  return location != ": " && text.starts_with(location) ? text.substr(location.size()) : text;
}

Failure failure_of(const std::exception_ptr& exception) {
  Failure found = described(exception);
  found.message = valid_utf8(found.message);
  for (Diagnostic& error : found.errors) {
    for (std::string* text : {&error.location.file, &error.message, &error.related_location.file, &error.related}) {
      *text = valid_utf8(*text);
    }
  }
  return found;
}

std::string failure_json(const Failure& failure) {
  const std::vector<Diagnostic> message = {{SourceLocation{}, failure.message, SourceLocation{}, ""}};
  return json_line({{"ok", false},
                    {"errors", entries(failure.errors.empty() ? message : failure.errors)},
                    {"exit_code", failure.exit_code}});
}

std::string diagnostics_json(const std::vector<Diagnostic>& diagnostics) { return json_line(entries(diagnostics)); }

std::vector<Diagnostic> read_diagnostics(const std::string& text) {
  std::vector<Diagnostic> all;
  try {
    for (const Json& entry : parse_json(text)) {
      Diagnostic found{read_location(entry), entry.at("message").get<std::string>(), SourceLocation{}, ""};
      if (const Json& other = entry.at("related"); !other.is_null()) {
        found.related_location = read_location(other);
        found.related = other.at("message").get<std::string>();
      }
      all.push_back(std::move(found));
    }
  } catch (const Json::exception&) {
    return {};
  }
  return all;
}

}  // namespace trainctl
