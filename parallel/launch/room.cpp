// Asks for space, open files and the working directory.
#include "parallel/launch/room.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {

RoomNeeded room_needed(int ranks_here) {
  // As OpenMPI 4.1 and PMIx 4 were seen to take, with some to spare: two files of 4 MiB and a page for each rank;
  // vader's segment of 4 MiB for each rank; 26 open files and 3 more for each rank, and some while they start.
  RoomNeeded needed;
  needed.temporary = (std::int64_t{9} << 20) + std::int64_t{16384} * ranks_here;
  needed.shared_memory = ((std::int64_t{4} << 20) + 4096) * ranks_here;
  needed.file_size = (std::int64_t{4} << 20) + 4096;
  needed.open_files = 40 + 4 * ranks_here;
  return needed;
}

std::string nearest_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::absolute(path, ignored);
  while (!std::filesystem::is_directory(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

std::string why_no_room(const std::string& folder, std::int64_t bytes) {
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0) return format("{}: {}", folder, std::strerror(errno));
  if ((status.f_flag & ST_RDONLY) != 0) return folder + " is read-only";
  if (status.f_blocks == 0) return "";  // a file system that does not count
  const auto left = static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
  if (left < bytes) return format("{} has {} left, and {} are needed", folder, byte_text(left), byte_text(bytes));
  constexpr int files = 64;
  if (status.f_files > 0 && status.f_favail < fsfilcnt_t{files}) {
    return format("{} has room for {} more files, and {} are needed", folder, status.f_favail, files);
  }
  return "";
}

void require_file_size(const std::string& folder, std::int64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(bytes)) return;
  throw Error(ErrorKind::resource,
              format("a file may grow to {}, and mpirun's files in {} need {} each",
                     byte_text(static_cast<std::int64_t>(limit.rlim_cur)), folder, byte_text(bytes)),
              "raise the limit (ulimit -f), or use --ranks 1");
}

void require_working_directory() {
  std::error_code error;
  const bool known = !std::filesystem::current_path(error).empty();
  if (known) return;
  const bool deleted = error == std::errc::no_such_file_or_directory;
  throw Error(ErrorKind::resource,
              format("the working directory cannot be used: {}", deleted ? "it was deleted" : error.message()),
              "go to a folder that is there (cd), and start again");
}

void permit_open_files(int needed) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(needed)) return;
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(needed));
  const bool raised = setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= static_cast<rlim_t>(needed);
  if (raised) return;
  throw Error(ErrorKind::resource,
              format("{} files may be open at once, and {} are needed to start the ranks", limit.rlim_cur, needed),
              "raise the limit (ulimit -n), or start fewer ranks");
}

}  // namespace trainctl
