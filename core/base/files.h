// Reads the user's files and folders. Each failed system call throws an Error with the file's name, the problem and a
// remedy. Only regular files are read, so that no call waits for another process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace trainctl {

// The role of a file: the kind of the errors about the file, and the remedy if the file is missing.
struct FileRole {
  ErrorKind kind = ErrorKind::data;
  std::string_view if_missing = {};
};

// Throws the Error of a failed call: `failed`, such as "cannot be opened", then the text of the errno value `error` and
// a remedy.
[[noreturn]] void throw_file_error(const std::string& path, std::string_view failed, int error,
                                   const FileRole& role = {});

// What is at a path: nothing, a regular file, a folder, a symbolic link, or anything else.
enum class FileType { absent, regular, folder, link, other };

// The type of the file at a path, following links; absent if the file or a folder above it does not exist. Throws if
// the type cannot be read, for example in a folder without permission.
FileType file_type(const std::string& path, const FileRole& role = {});
inline bool exists(const std::string& path, const FileRole& role = {}) {
  return file_type(path, role) != FileType::absent;
}
inline bool is_folder(const std::string& path, const FileRole& role = {}) {
  return file_type(path, role) == FileType::folder;
}

struct FolderEntry {
  std::string name;
  FileType type = FileType::other;  // links are not followed
};

// The entries of a folder, sorted bytewise by name, without "." and "..".
std::vector<FolderEntry> list_folder(const std::string& path, const FileRole& role = {});

// A regular file that is open for reading. Several threads may read it at the same time. The constructor throws if the
// path does not lead to a regular file or the file cannot be opened.
class InputFile {
 public:
  explicit InputFile(std::string path, const FileRole& role = {});
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  // The size in bytes at the time when the file was opened.
  std::int64_t size() const { return size_; }

  // Reads all bytes [offset, offset + count); throws if the file has become shorter.
  void read(std::int64_t offset, void* to, std::int64_t count) const;
  // Reads `limit` bytes, or fewer if the file ends before; returns the number of bytes read.
  std::int64_t read_some(std::int64_t offset, void* to, std::int64_t limit) const;

 private:
  std::string path_;
  FileRole role_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

// The whole content of a regular file; throws if it has more than `limit` bytes.
std::string read_file(const std::string& path, std::int64_t limit, const FileRole& role = {});

}  // namespace trainctl
