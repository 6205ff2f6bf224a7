// Writes files and folders under temporary names and renames them afterwards.
#include "io/checkpoint/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/full_disk.h"
#include "io/checkpoint/temporary_name.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t chunk = 256 << 10;  // hashed while it is still in a core's own cache

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// Returns " (1.2 MB are needed, 512 bytes are free)" or that no inodes are left; "" if neither is known.
std::string shortage(const std::string& folder, std::int64_t need) {
  struct statvfs status {};
  const bool known = statvfs(folder.c_str(), &status) == 0;
  if (known && status.f_files > 0 && status.f_favail == 0) return " (no inodes are left: too many files)";
  std::string text = need > 0 ? format("{} are needed", byte_text(need)) : "";
  if (known) {
    const auto free = static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
    text += format("{}{} are free", text.empty() ? "" : ", ", byte_text(free));
  }
  return text.empty() ? "" : " (" + text + ")";
}

[[noreturn]] void throw_resource(const std::string& path, int error, std::int64_t need = 0) {
  std::string message = "cannot write: " + std::generic_category().message(error);
  std::string remedy = "choose a path that can be written (for a run: --run-dir)";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    message += shortage(folder_of(path), need);
    remedy = "free some space there, or choose another path (for a run: --run-dir), then run again";
  }
  throw Error(ErrorKind::resource, SourceLocation{path}, message, remedy);
}

// open() and fsync() that are repeated after a signal.
int open_file(const std::string& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

int sync(int descriptor) {
  int result = 0;
  do {
    result = fsync(descriptor);
  } while (result != 0 && errno == EINTR);
  return result;
}

void sync_folder(const std::string& folder, const std::string& shown) {
  const int descriptor = open_file(folder, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) throw_resource(shown, errno);
  const int error = sync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  if (error != 0 && error != EINVAL) throw_resource(shown, error);  // EINVAL: the file system cannot fsync folders
}

// Renames a file or folder. If the new name does not reach the disk, a name that did not exist before is removed again.
void rename_over(const std::string& from, const std::string& to) {
  struct stat status {};
  const bool is_new = lstat(to.c_str(), &status) != 0;
  if (rename(from.c_str(), to.c_str()) != 0) throw_resource(to, errno);
  try {
    sync_folder(folder_of(to), to);
  } catch (...) {
    if (is_new) rename(to.c_str(), from.c_str());
    throw;
  }
}

// Returns the errno of a rehearsed full disk, or 0.
int rehearsed_error(FileUse use) {
  if (use == FileUse::shared_memory) return 0;
  return use == FileUse::checkpoint ? save_error() : full_disk_error();
}

}  // namespace

OutputFile::OutputFile(const std::string& path, std::string shown, std::int64_t need, FileUse use)
    : shown_(std::move(shown)), need_(need), use_(use) {
  descriptor_ = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (descriptor_ < 0) fail();
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void OutputFile::fail() const { throw_resource(shown_, errno, need_); }

void OutputFile::write(const void* data, std::int64_t bytes) {
  const char* next = static_cast<const char*>(data);
  if (const int error = rehearsed_error(use_)) throw_resource(shown_, error, need_);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, next, static_cast<std::size_t>(std::min(bytes, chunk)));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail();
    }
    hash_.update(next, static_cast<std::size_t>(written));
    next += written;
    bytes -= written;
    bytes_ += written;
  }
}

FileSeal OutputFile::finish() {
  if (sync(descriptor_) != 0 && errno != EINVAL) fail();                     // EINVAL: a device or pipe
  if (close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail();  // after EINTR the file is closed, too
  return {bytes_, hash_.finish()};
}

void require_space_for(const std::string& path, std::int64_t need) {
  struct statvfs status {};
  if (statvfs(folder_of(path).c_str(), &status) != 0 || status.f_blocks == 0) return;
  const double free = static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
  if (free < static_cast<double>(need)) throw_resource(path, ENOSPC, need);
}

AtomicFolder::AtomicFolder(std::string path) : path_(std::move(path)), temporary_(new_temporary_name(path_)) {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  if (mkdir(temporary_.c_str(), 0777) != 0) throw_resource(path_, errno);
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);  // after commit() this is the replaced folder, or does not exist
}

void AtomicFolder::commit() {
  sync_folder(temporary_, path_);
  struct stat status {};
  if (lstat(path_.c_str(), &status) != 0) return rename_over(temporary_, path_);
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) {
    sync_folder(folder_of(path_), path_);
    return;
  }
  // The file system has no RENAME_EXCHANGE: the folder that is replaced is renamed first.
  const std::string old = temporary_ + ".old";
  std::error_code ignored;
  if (fs::exists(path_, ignored)) rename_over(path_, old);
  rename_over(temporary_, path_);
  fs::remove_all(old, ignored);
}

void write_file(const std::string& path, std::string_view text) {
  const auto bytes = static_cast<std::int64_t>(text.size());
  write_file(path, bytes, [&](OutputFile& file) { file.write(text.data(), bytes); });
}

void write_file(const std::string& path, std::int64_t need, const std::function<void(OutputFile&)>& write) {
  const std::string temporary = new_temporary_name(path);
  try {
    OutputFile file(temporary, path, need);
    write(file);
    file.finish();
    rename_over(temporary, path);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
}

void replace_link(const std::string& link, const std::string& target) {
  const std::string temporary = new_temporary_name(link);
  unlink(temporary.c_str());
  if (symlink(target.c_str(), temporary.c_str()) != 0) throw_resource(link, errno);
  try {
    rename_over(temporary, link);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
}

void create_folders(const std::string& path) {
  std::error_code error, ignored;
  fs::create_directories(path, error);
  if (!error) return;
  if (fs::is_symlink(path, ignored) && !fs::exists(path, ignored)) {
    throw Error(ErrorKind::resource, SourceLocation{path},
                format("it is a link to {}, which does not exist", fs::read_symlink(path, ignored).string()),
                "make that folder, or choose another one (for a run: --run-dir)");
  }
  throw_resource(path, error.value());
}

}  // namespace trainctl
