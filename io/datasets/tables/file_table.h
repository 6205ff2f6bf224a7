// Reads a table that names a file for each sample, and a text: its class, or what it shows.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

// A column, and the option that chooses it, for messages.
struct NamedColumn {
  std::string name;  // empty: the column is not read
  const char* option = "";
};

struct FileRow {
  std::string path;   // of the file
  std::string file;   // the same as the table names it: relative to its folder
  std::string text;   // without white space at both ends
  std::string place;  // of the row, for messages: "words.csv, line 12"
};

// Reads the rows of a .csv file; the names of files are relative to its folder. Throws Error{data} with the line if a
// file does not exist, a text is not UTF-8, or a line has another number of fields than the first one.
std::vector<FileRow> read_file_table(const std::string& path, const NamedColumn& file, const NamedColumn& text);

}  // namespace trainctl
