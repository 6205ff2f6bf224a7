// Reading the user's files and folders: each failure of the file system becomes one Error that names the file, says
// what is wrong with it and what to do. Only regular files are read, so that no call waits for another process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace trainctl {

// The role of a file: the kind of the errors that concern the file, and the remedy where the file is missing.
struct FileRole {
  ErrorKind kind = ErrorKind::data;
  std::string_view if_missing = {};
};

// Throws the Error of a failed call, such as "cannot be opened", with errno's sentence and a remedy.
[[noreturn]] void throw_file_error(const std::string& path, std::string_view failed, int error,
                                   const FileRole& role = {});

enum class FileType { absent, regular, folder, link, other };

// The type of the file that a path leads to, links followed; absent where the name or a folder above it does not exist.
// Throws where the type cannot be found out, for example in a folder without permission.
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

// The entries of a folder in bytewise order, without "." and "..".
std::vector<FolderEntry> list_folder(const std::string& path, const FileRole& role = {});

// A regular file that is open for reading. Any thread may read it. The constructor throws where the path leads to no
// regular file or the file cannot be opened.
class InputFile {
 public:
  explicit InputFile(std::string path, const FileRole& role = {});
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  // The size in bytes at the time when the file was opened.
  std::int64_t size() const { return size_; }

  // Reads bytes [offset, offset + count), all of them; throws where the file has become shorter.
  void read(std::int64_t offset, void* to, std::int64_t count) const;
  // Reads up to `most` bytes, fewer only at the end of the file; returns how many.
  std::int64_t read_some(std::int64_t offset, void* to, std::int64_t most) const;

 private:
  std::string path_;
  FileRole role_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

// A regular file's whole content; throws where the content is more than `most` bytes.
std::string read_file(const std::string& path, std::int64_t most, const FileRole& role = {});

}  // namespace trainctl
