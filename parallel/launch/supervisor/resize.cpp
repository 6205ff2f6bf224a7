// Writes and reads the file of a request to resize a run.
#include "parallel/launch/supervisor/resize.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/base/error.h"
#include "parallel/launch/hosts.h"

namespace trainctl {
namespace {

std::string path_of_request(const std::string& run_directory) { return run_directory + "/resize"; }

}  // namespace

void request_ranks(const std::string& run_directory, int ranks) {
  const std::string path = path_of_request(run_directory), temporary = path + ".new";
  std::ofstream file(temporary);
  file << ranks << '\n';
  file.close();
  if (file.fail() || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const bool is_full = errno == ENOSPC || errno == EDQUOT;
    const std::string why = std::generic_category().message(errno);
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw Error(ErrorKind::resource, SourceLocation{path}, "cannot write: " + why,
                is_full ? "free some space there: the ranks must write a checkpoint before they start again"
                        : "give the command as the user of the run");
  }
}

std::optional<int> requested_ranks_of(const std::string& run_directory) {
  namespace fs = std::filesystem;
  constexpr std::chrono::seconds oldest(30);
  const std::string path = path_of_request(run_directory);
  std::error_code none;
  const fs::file_time_type written = fs::last_write_time(path, none);
  if (none) return {};
  if (fs::file_time_type::clock::now() - written > oldest) {
    remove_request(run_directory);
    return {};
  }
  std::ifstream file(path);
  int ranks = 0;
  return file >> ranks && ranks >= 1 && ranks <= max_slots ? std::optional(ranks) : std::nullopt;
}

bool keep_request(const std::string& run_directory) {
  std::error_code none;
  std::filesystem::last_write_time(path_of_request(run_directory), std::filesystem::file_time_type::clock::now(), none);
  return !none;
}

bool remove_request(const std::string& run_directory) {
  std::error_code ignored;
  return std::filesystem::remove(path_of_request(run_directory), ignored);
}

}  // namespace trainctl
