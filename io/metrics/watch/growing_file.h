// A text file that another process, perhaps on another host, appends to. It is looked at again and again: file systems
// of a network send no notice.
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
    bool anew = false;               // the lines of earlier calls are gone: the file was removed, replaced or cut
    bool more = false;               // more lines are there already
    std::vector<std::string> lines;  // without their line breaks
  };
  // Reads the whole lines that have come since the last call, some megabytes at most. A last line without its line
  // break waits for that; so does a file that is not there. Throws Error{config} where the file cannot be read, or has
  // a line that is longer than any that trainctl writes.
  News read();

 private:
  bool holds_what_was_read(const InputFile& file) const;

  std::string path_;
  std::int64_t offset_ = 0;  // behind the lines that were read
  std::string tail_;         // the last bytes before it: another file has others there, since every event has its time
};

}  // namespace trainctl
