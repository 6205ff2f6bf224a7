// Reads the lines of a table of comma-separated values and splits them into fields as in RFC 4180.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/arrays/bytes.h"

namespace trainctl {

// The location of a line, for messages. If fields hold line ends, it spans several lines of the file.
struct LineLocation {
  const std::string* path = nullptr;
  std::int64_t line = 0;  // number, from 1
  char delimiter = ',';   // between the fields of the file
  std::int64_t last = 0;  // number of its last line
};

// Reads a file's lines one after another. Quoted fields may contain delimiters, doubled quotes and line ends. Line ends
// of one character and a byte order mark are also accepted.
class CsvLines {
 public:
  // Throws Error{data} if the file cannot be read or is compressed. `path` must outlive the object.
  CsvLines(const std::string& path, char delimiter);

  // Reads the fields of the next line that is not empty. Returns false at the end of the file. The views are valid
  // until the next call. Throws Error{data} if a quotation mark is not closed or text follows a closing one.
  bool next(std::vector<std::string_view>& fields);

  // The location of the line that next() read last.
  LineLocation place() const { return {&path_, line_, delimiter_, last_line_}; }

 private:
  std::string_view read_plain();
  std::string_view read_quoted();
  void skip_line_end();

  const std::string& path_;
  char delimiter_;
  Bytes bytes_;
  std::string_view rest_;          // the text that has not been read yet
  std::list<std::string> quoted_;  // quoted fields of this line, unescaped
  std::int64_t line_ = 0, last_line_ = 0, next_line_ = 1;
};

}  // namespace trainctl
