// Reads tables of files and texts.
#include "io/datasets/tables/file_table.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "core/spec/suggestion.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/csv_column.h"
#include "io/datasets/tables/csv_lines.h"
#include "io/datasets/tables/csv_width.h"
#include "io/datasets/utf8_names.h"

namespace trainctl {
namespace {

std::size_t find_named_column(const std::vector<std::string_view>& header, const NamedColumn& column,
                              const std::string& path) {
  const std::vector<std::string> names(header.begin(), header.end());
  const auto found = std::find(names.begin(), names.end(), column.name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  if (names.size() == 1 && names[0].find_first_of(";\t") != std::string::npos) {
    data_error(path,
               format("has no column '{}': {} separate the fields of its first line", column.name,
                      names[0].find(';') != std::string::npos ? "semicolons" : "tabs"),
               "separate the fields by commas");
  }
  data_error(path, format("has no column '{}'{}", column.name, suggestion(column.name, names)),
             format("the first line must name the columns; choose another one with `{}`", column.option));
}

// Throws Error{data} if the first line names files instead of columns.
void require_header(const std::vector<std::string_view>& header, const std::filesystem::path& folder,
                    const std::string& path) {
  for (const std::string_view field : header) {
    const std::filesystem::path file = folder / std::string(trimmed(field));
    if (!file.has_extension() || file_type(file.string()) != FileType::regular) continue;
    data_error(path, format("line 1 names the file {} instead of columns", file.string()),
               "write the names of the columns into the first line");
  }
}

}  // namespace

std::vector<FileRow> read_file_table(const std::string& path, const NamedColumn& file, const NamedColumn& text) {
  CsvLines lines(path, ',');
  std::vector<std::string_view> fields;
  if (!lines.next(fields)) data_error(path, "is empty");
  const std::size_t width = fields.size();
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  require_header(fields, folder, path);
  const std::size_t files = find_named_column(fields, file, path);
  const std::size_t texts = text.name.empty() ? width : find_named_column(fields, text, path);
  std::vector<FileRow> rows;
  while (lines.next(fields)) {
    const std::string where = format("line {}", lines.place().line);
    if (fields.size() != width) refuse_width(lines.place(), fields, width);
    FileRow row;
    row.file = trimmed(fields[files]);
    row.path = (folder / row.file).string();
    row.place = format("{}, {}", path, where);
    if (file_type(row.path) == FileType::absent || is_folder(row.path)) {
      data_error(path, format("{}: there is no file {}", where, row.path),
                 "write the file's path relative to the folder of the table");
    }
    if (texts < width) {
      row.text = trimmed(fields[texts]);
      require_utf8_text(path, format("{}, column '{}'", where, text.name), row.text);
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) data_error(path, "has no line of values");
  return rows;
}

}  // namespace trainctl
