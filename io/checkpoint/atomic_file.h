// Files and folders that are whole or absent: temporary name, write, fsync, rename, fsync of the folder.
//
// A killed process leaves nothing but a temporary name (temporary_name.h). What writes throws Error{resource} that
// names the final path, what went wrong, how much space was needed and how much there is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/hash.h"

namespace trainctl {

// What a finished file is, to know it again.
struct FileSeal {
  std::int64_t bytes = 0;
  std::string sha256;

  bool operator==(const FileSeal&) const = default;
};

// A file being written from its beginning, hashed on the way. Created at `path`; messages call it `shown`. `need` is
// the number of bytes that whoever writes needs in all.
class OutputFile {
 public:
  OutputFile(const std::string& path, std::string shown, std::int64_t need);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, std::int64_t bytes);
  // Returns when everything is on the disk; the file is closed.
  FileSeal finish();

 private:
  [[noreturn]] void fail() const;

  std::string shown_;
  std::int64_t need_;
  std::int64_t bytes_ = 0;
  int descriptor_ = -1;
  Sha256 hash_;
};

// A folder that appears under its name when it is complete. Until commit() it lies beside it under a temporary name,
// and goes with this object.
class AtomicFolder {
 public:
  explicit AtomicFolder(std::string path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  // Where it lies until then, for those who write its files.
  const std::string& temporary() const { return temporary_; }
  // All files must be finished. A folder of that name is replaced.
  void commit();

 private:
  std::string path_;
  std::string temporary_;
};

// Writes a whole file, replacing one of that name.
void write_file(const std::string& path, std::string_view text);
// Likewise, of what `write` writes: `need` bytes or a little more.
void write_file(const std::string& path, std::int64_t need, const std::function<void(OutputFile&)>& write);

// Makes `link` a symbolic link to `target`, replacing one of that name.
void replace_link(const std::string& link, const std::string& target);

// Creates a folder, and those above it.
void create_folders(const std::string& path);

}  // namespace trainctl
