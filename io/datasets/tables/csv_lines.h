// The lines of a table of comma-separated values, cut into fields by RFC 4180.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/arrays/bytes.h"

namespace trainctl {

// The place of a line, for messages.
struct LinePlace {
  const std::string* path = nullptr;
  std::int64_t line = 0;  // from 1
};

// Reads a file's lines one after another. Quoted fields may contain delimiters, doubled quotes and line ends; line ends
// of one character and a byte order mark are accepted too.
class CsvLines {
 public:
  // Throws Error{data} where the file cannot be read or is compressed. `path` must outlive the object.
  CsvLines(const std::string& path, char delimiter);

  // Gives the fields of the next line that is not empty; false at the end of the file. The views are valid until the
  // next call. Throws Error{data} where a quotation mark is not closed or text follows one.
  bool next(std::vector<std::string_view>& fields);

  // The line that next() read last; the first of its lines where fields hold line ends.
  LinePlace place() const { return {&path_, line_}; }

 private:
  std::string_view take_plain();
  std::string_view take_quoted();
  void take_line_end();

  const std::string& path_;
  char delimiter_;
  Bytes bytes_;
  std::string_view rest_;
  std::list<std::string> quoted_;  // quoted fields of this line, unescaped
  std::int64_t line_ = 0, next_line_ = 1;
};

}  // namespace trainctl
