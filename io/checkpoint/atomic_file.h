// Writes files and folders atomically: they are written under a temporary name, fsynced and renamed, so that they are
// whole or absent.
//
// A killed process leaves at most a file or folder under a temporary name (temporary_name.h). Every function that
// writes throws Error{resource}; the text names the final path, the cause, the space that is needed and the space that
// is free.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/hash.h"

namespace trainctl {

// Size and hash of a finished file, with which its contents can be verified later.
struct FileSeal {
  std::int64_t bytes = 0;
  std::string sha256;

  bool operator==(const FileSeal&) const = default;
};

// What a file is for, which decides whether it can be written while a full disk is rehearsed (core/base/full_disk.h):
// only a file of a checkpoint counts as a save, and shared memory is no disk.
enum class FileUse { other, checkpoint, shared_memory };

// A file that is written from its beginning and hashed meanwhile. It is created at `path`; messages call it `shown`.
// `need` is the total number of bytes that the caller is going to write; it is used for the error text if the disk is
// full.
class OutputFile {
 public:
  OutputFile(const std::string& path, std::string shown, std::int64_t need, FileUse use = FileUse::other);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, std::int64_t bytes);
  // Closes the file, and returns once all bytes are on the disk.
  FileSeal finish();

 private:
  [[noreturn]] void fail() const;

  std::string shown_;
  std::int64_t need_;
  FileUse use_;
  std::int64_t bytes_ = 0;
  int descriptor_ = -1;
  Sha256 hash_;
};

// Throws Error{resource}, as if the disk were full, if the file system of the folder of `path` has less space for this
// user than `need` bytes. A file system that tells no size is taken to have enough.
void require_space_for(const std::string& path, std::int64_t need);

// A folder that gets its name once it is complete. Until commit() it has a temporary name in the same parent folder;
// the destructor removes a folder that was not committed.
class AtomicFolder {
 public:
  explicit AtomicFolder(std::string path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  // The path of the folder before commit(); its files are written there.
  const std::string& temporary() const { return temporary_; }
  // Gives the folder its final name, and replaces an existing folder of that name. All files in it must be finished.
  void commit();

 private:
  std::string path_;
  std::string temporary_;
};

// Writes a whole file, and replaces an existing file of that name.
void write_file(const std::string& path, std::string_view text);
// Writes a whole file whose contents the callback `write` produces: `need` bytes or a little more.
void write_file(const std::string& path, std::int64_t need, const std::function<void(OutputFile&)>& write);

// Makes `link` a symbolic link to `target`, and replaces an existing link of that name.
void replace_link(const std::string& link, const std::string& target);

// Creates a folder and its missing parents.
void create_folders(const std::string& path);

}  // namespace trainctl
