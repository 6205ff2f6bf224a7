// Makes and parses temporary names.
#include "io/checkpoint/temporary_name.h"

#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>

#include "core/base/files.h"
#include "core/base/format.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view temporary_prefix = ".partial-";

// The end of a temporary name of this host, after the writer's process.
std::string end_of_temporary(const fs::path& path) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  gethostname(host.data(), host.size() - 1);
  return format("-{}-{}", host.data(), path.filename().string());
}

// Returns the process number from a temporary name, which consists of the prefix, "PROCESS" or "PROCESS.SUFFIX", and
// `end`; no value for other names.
std::optional<pid_t> writer_of(std::string_view name, std::string_view end) {
  if (!name.starts_with(temporary_prefix) || !name.ends_with(end) || name.size() < temporary_prefix.size() + end.size())
    return {};
  const std::string_view writer =
      name.substr(temporary_prefix.size(), name.size() - temporary_prefix.size() - end.size());
  pid_t process = 0;
  const auto [last, problem] = std::from_chars(writer.data(), writer.data() + writer.size(), process);
  const bool number = problem == std::errc() && process > 0;
  const bool whole = last == writer.data() + writer.size() || *last == '.';
  return number && whole ? std::optional(process) : std::nullopt;
}

}  // namespace

std::string temporary_name(const std::string& path, std::string_view writer_suffix) {
  const std::string writer = writer_suffix.empty() ? format("{}", getpid()) : format("{}.{}", getpid(), writer_suffix);
  return (fs::path(path).parent_path() / format("{}{}{}", temporary_prefix, writer, end_of_temporary(path))).string();
}

void remove_dead_temporaries(const std::string& path) {
  const std::string end = end_of_temporary(path);
  const fs::path folder = fs::path(path).parent_path();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    const std::optional<pid_t> writer = writer_of(entry.path().filename().string(), end);
    if (writer && kill(*writer, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), ignored);
  }
}

std::string new_temporary_name(const std::string& path) {
  remove_dead_temporaries(path);
  return temporary_name(path);
}

void remove_leftovers(const std::string& folder) {
  std::error_code ignored;
  for (const FolderEntry& entry : list_folder(folder)) {
    if (entry.name.starts_with(temporary_prefix)) fs::remove_all(folder + "/" + entry.name, ignored);
  }
}

}  // namespace trainctl
