// Reads files and folders through POSIX calls and throws an Error for every failed call.
#include "core/base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "core/base/format.h"

namespace trainctl {
namespace {

// Returns the remedy for a path with a folder `~` or `$NAME`, which shells replace; "" for another path.
std::string remedy_for_shell_words(const std::string& path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    const std::string name = part == "~" ? "HOME" : part.substr(part.starts_with('$') ? 1 : part.size());
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(),
                                                      [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (is_name) return format("'{}' is not replaced; in a config, write ${{{}}}", part, name);
  }
  return "";
}

std::string_view remedy_for(int error, const FileRole& role) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return role.if_missing;
    case EACCES:
    case EPERM:
      return "give this user the permission to read it, and to enter the folders above it";
    case ELOOP:
      return "a symbolic link points to itself: correct the link";
    case ENAMETOOLONG:
      return "shorten the path";
    case EMFILE:
    case ENFILE:
      return "allow more open files (ulimit -n)";
    case EIO:
    case ESTALE:
      return "the disk or the file server failed: see the system log";
    default:
      return {};
  }
}

// Rejects a path that contains a zero byte: passed on as a C string, it would name another file.
void check_name(const std::string& path, const FileRole& role) {
  if (path.find('\0') == std::string::npos) return;
  throw Error(role.kind, SourceLocation{path.substr(0, path.find('\0'))}, "its name contains a zero byte");
}

FileType type_of(mode_t mode) {
  return S_ISREG(mode)   ? FileType::regular
         : S_ISDIR(mode) ? FileType::folder
         : S_ISLNK(mode) ? FileType::link
                         : FileType::other;
}

FileType type_of(const std::string& folder, const dirent& entry, const FileRole& role) {
  switch (entry.d_type) {
    case DT_REG:
      return FileType::regular;
    case DT_DIR:
      return FileType::folder;
    case DT_LNK:
      return FileType::link;
    case DT_UNKNOWN:
      break;
    default:
      return FileType::other;
  }
  // This file system does not store types in its folders.
  const std::string path = folder + "/" + entry.d_name;
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) throw_file_error(path, "cannot be read", errno, role);
  return type_of(status.st_mode);
}

const char* description(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
         : S_ISCHR(mode)  ? "a device"
         : S_ISBLK(mode)  ? "a disk device"
                          : "something else";
}

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

}  // namespace

void throw_file_error(const std::string& path, std::string_view failed, int error, const FileRole& role) {
  const bool resource = error == EMFILE || error == ENFILE || error == ENOMEM;
  const std::string shell_words = error == ENOENT ? remedy_for_shell_words(path) : "";
  throw Error(resource ? ErrorKind::resource : role.kind, SourceLocation{path},
              format("{}: {}", failed, std::generic_category().message(error)),
              shell_words.empty() ? remedy_for(error, role) : std::string_view(shell_words));
}

FileType file_type(const std::string& path, const FileRole& role) {
  check_name(path, role);
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return type_of(status.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return FileType::absent;
  throw_file_error(path, "cannot be read", errno, role);
}

std::vector<FolderEntry> list_folder(const std::string& path, const FileRole& role) {
  check_name(path, role);
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(path.c_str()));
  if (!folder) throw_file_error(path, "cannot be read", errno, role);
  std::vector<FolderEntry> entries;
  for (;;) {
    errno = 0;  // readdir returns null at the end, and on an error, which also sets errno
    const dirent* entry = readdir(folder.get());
    if (!entry && errno != 0) throw_file_error(path, "cannot be read", errno, role);
    if (!entry) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") entries.push_back({std::string(name), type_of(path, *entry, role)});
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

InputFile::InputFile(std::string path, const FileRole& role) : path_(std::move(path)), role_(role) {
  check_name(path_, role_);
  do {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0 && errno == ENXIO)
    throw Error(role_.kind, SourceLocation{path_}, "is not a regular file");  // a socket
  if (descriptor_ < 0) throw_file_error(path_, "cannot be opened", errno, role_);
  struct stat status {};
  const int error = fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(status.st_mode)) {
    size_ = status.st_size;
    return;
  }
  close(descriptor_);
  if (error != 0) throw_file_error(path_, "cannot be opened", error, role_);
  throw Error(role_.kind, SourceLocation{path_}, format("is {}, not a regular file", description(status.st_mode)));
}

InputFile::~InputFile() { close(descriptor_); }

std::int64_t InputFile::read_some(std::int64_t offset, void* to, std::int64_t limit) const {
  auto* next = static_cast<std::byte*>(to);
  std::int64_t done = 0;
  while (done < limit) {
    const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(limit - done, 1 << 30));
    const ssize_t got = pread(descriptor_, next + done, wanted, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_file_error(path_, "cannot be read", errno, role_);
    if (got == 0) break;
    done += got;
  }
  return done;
}

void InputFile::read(std::int64_t offset, void* to, std::int64_t count) const {
  if (read_some(offset, to, count) == count) return;
  throw Error(role_.kind, SourceLocation{path_}, "has become shorter since it was opened",
              "do not change the file while it is in use");
}

std::string read_file(const std::string& path, std::int64_t limit, const FileRole& role) {
  const InputFile file(path, role);
  std::string text;
  // Reads until the end of the file, not just size() bytes: the size is 0 for files in /proc.
  for (std::int64_t capacity = std::min(limit, file.size()) + 1;; capacity = std::min(2 * capacity, limit + 1)) {
    const auto before = static_cast<std::int64_t>(text.size());
    text.resize(static_cast<std::size_t>(capacity));
    const std::int64_t got = file.read_some(before, text.data() + before, capacity - before);
    text.resize(static_cast<std::size_t>(before + got));
    if (before + got > limit) throw Error(role.kind, SourceLocation{path}, format("is larger than {} bytes", limit));
    if (before + got < capacity) return text;
  }
}

}  // namespace trainctl
