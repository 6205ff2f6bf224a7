// Reads a text file to which another process, perhaps on another host, appends lines. The file is polled, since network
// file systems do not report changes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainctl {

class InputFile;

class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_(std::move(path)) {}

  struct News {
    bool anew = false;  // the lines of earlier calls are no longer valid: the file was removed, replaced or truncated
    bool more = false;  // the file has more lines already
    std::vector<std::string> lines;  // without their line breaks
  };
  // Returns the complete lines that were appended since the last call, at most some megabytes; no lines if the file
  // does not exist. An incomplete last line is returned once its line break has been written. Throws Error{config} if
  // the file cannot be read, or has a line that is longer than any line of trainctl.
  News read();

 private:
  bool has_known_tail(const InputFile& file) const;

  std::string path_;
  std::int64_t offset_ = 0;  // end of the lines that were read
  std::string tail_;         // the last bytes before offset_; they differ in another file, since events have times
};

}  // namespace trainctl
