// Creates and removes folders in shared memory.
#include "core/base/memory_folder.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/generation.h"
#include "core/base/hash.h"
#include "core/base/own_folder.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

std::string folder_of_user(const std::string& shared_memory) {
  return format("{}/trainctl-{}", shared_memory, geteuid());
}

[[noreturn]] void refuse(const std::string& path, const std::string& why, const std::string& remedy) {
  throw Error(ErrorKind::resource, SourceLocation{path}, "no copies of the run's state can be kept in memory: " + why,
              remedy);
}

// Creates a folder that only this user can read, unless it exists.
void create_private(const std::string& path) {
  constexpr const char* remedy = "remove that folder, or checkpoint.memory_every";
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) refuse(path, std::generic_category().message(errno), remedy);
  if (!is_own_folder(path)) refuse(path, "it belongs to another user or is no folder", remedy);
}

// The bytes of the files in a folder.
std::int64_t bytes_in(const std::string& folder) {
  std::int64_t bytes = 0;
  std::error_code none;
  // increment() does not throw, as ++ does, if another process removes a folder meanwhile. It then ends the loop.
  for (fs::recursive_directory_iterator entry(folder, none), end; entry != end; entry.increment(none)) {
    if (!entry->is_regular_file(none)) continue;
    const std::uintmax_t size = entry->file_size(none);
    if (size != static_cast<std::uintmax_t>(-1)) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

// Throws Error{resource} if the file system has less than `bytes` bytes, of which `own` are used by the run already.
void require_space(const std::string& shared_memory, std::int64_t bytes, std::int64_t own) {
  struct statvfs status {};
  if (statvfs(shared_memory.c_str(), &status) != 0) return;
  const auto left = static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
  if (left + own >= bytes) return;
  refuse(shared_memory, format("it has {} left, but two copies need {}", byte_text(left), byte_text(bytes)),
         "make it larger (mount -o remount,size=...; in a container: --shm-size), or remove checkpoint.memory_every");
}

}  // namespace

void require_shared_memory(const std::string& shared_memory, std::int64_t bytes) {
  require_space(shared_memory, bytes, 0);
}

std::string memory_folder_of(const std::string& run_directory, const std::string& shared_memory) {
  const fs::path directory = fs::absolute(run_directory).lexically_normal();
  const fs::path path = directory.has_filename() ? directory : directory.parent_path();
  const std::string text = path.string();
  return format("{}/{}-{:016x}", folder_of_user(shared_memory), path.filename().string(),
                xxh3(text.data(), text.size()));
}

bool are_copies_of(const std::string& folder, const std::string& launch) {
  if (launch.empty() || !is_own_folder(fs::path(folder).parent_path()) || !is_own_folder(folder)) return false;
  std::ifstream lock(folder + "/lock");
  return generation_in({std::istreambuf_iterator<char>(lock), {}}).launch == launch;
}

std::set<std::string> copies_of_launch(const std::string& launch, const std::string& shared_memory) {
  std::set<std::string> found;
  std::error_code none;
  // increment() does not throw, as ++ does: destructors call this.
  for (fs::directory_iterator entry(folder_of_user(shared_memory), none), end; entry != end; entry.increment(none)) {
    if (are_copies_of(entry->path(), launch)) found.insert(entry->path());
  }
  return found;
}

void create_memory_folder(const std::string& folder, std::int64_t bytes) {
  create_private(fs::path(folder).parent_path());
  create_private(folder);
  const std::string shared_memory = fs::path(folder).parent_path().parent_path();
  try {
    require_space(shared_memory, bytes, bytes_in(folder));
  } catch (...) {
    rmdir(folder.c_str());  // fails if it has a copy from which the run may go on
    rmdir(fs::path(folder).parent_path().c_str());
    throw;
  }
}

void remove_memory_folder(const std::string& folder) {
  std::error_code none;
  fs::remove_all(folder, none);
  fs::remove(fs::path(folder).parent_path(), none);  // fails if another run has a folder there
}

}  // namespace trainctl
