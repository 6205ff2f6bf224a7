// Finds why the lines of a table differ in length.
#include "io/datasets/tables/csv_width.h"

#include <algorithm>
#include <string>

#include "core/base/format.h"
#include "core/base/shell_words.h"
#include "core/base/table.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/csv_column.h"
#include "io/datasets/tables/number_marks.h"

namespace trainctl {
namespace {

// Whether the lines after the first one all have this number of fields, as far as the first of them tell.
bool all_have(CsvLines& lines, std::size_t width) {
  constexpr int most = 20;
  std::vector<std::string_view> fields;
  for (int i = 0; i < most && lines.next(fields); ++i) {
    if (fields.size() != width) return false;
  }
  return true;
}

std::string without_matching(const std::string& script, const std::string& path) {
  return format("sed {} {} > {}", shell_word(script), shell_word(path), shell_word(name_of_copy(path, "complete")));
}

std::string remedy_for_width(const LineLocation& line, const std::vector<std::string_view>& fields,
                             std::size_t expected) {
  const std::string& path = *line.path;
  CsvLines lines(path, line.delimiter);
  std::vector<std::string_view> first;
  lines.next(first);
  const std::string begin = first.empty() ? "" : std::string(trimmed(first[0]));
  if (begin.starts_with("sep=")) {
    return format(
        "its first line is meant for Excel: leave it out ({}), and set `delimiter` to the character after "
        "`sep=`",
        command_without_lines(path, lines.place().line, lines.place().last));
  }
  if (begin.starts_with('#') || begin.starts_with('%')) {
    return format("its first line, '{}', seems to be a comment: leave out such lines ({})", begin.substr(0, 40),
                  without_matching(begin[0] == '#' ? "/^#/d" : "/^%/d", path));
  }
  if (std::any_of(fields.begin(), fields.end(), [](std::string_view field) { return field.starts_with('\''); })) {
    return "quote fields that hold the delimiter with double quotation marks (\"): single ones are part of the text";
  }
  if (fields.size() == expected + 1 && all_have(lines, fields.size())) {
    return "the first line has one name less than the lines have fields: write a name for each column; R's write.table "
           "leaves out the name of the column of row names, unless col.names=NA is set, and row.names=FALSE leaves out "
           "the column";
  }
  return "quote fields that hold the delimiter, set another `delimiter`, or write all fields of each line";
}

}  // namespace

void refuse_width(const LineLocation& line, const std::vector<std::string_view>& fields, std::size_t expected) {
  data_error(*line.path, format("line {} has {}, not {}", line.line, counted(fields.size(), "field"), expected),
             remedy_for_width(line, fields, expected));
}

bool may_be_preamble(const std::vector<std::string_view>& fields) {
  const std::string_view first = trimmed(fields[0]);
  return first.starts_with("sep=") || (fields.size() == 1 && (first.starts_with('#') || first.starts_with('%')));
}

void refuse_preamble(const std::string& path, char delimiter) {
  constexpr int most = 20;
  CsvLines lines(path, delimiter);
  std::vector<std::string_view> fields;
  if (!lines.next(fields)) return;
  const std::string first(trimmed(fields[0]));
  const std::size_t width = fields.size();
  if (first.starts_with("sep=")) {
    data_error(path, "its first line does not name columns", remedy_for_width(lines.place(), fields, width));
  }
  for (int i = 0; i < most && lines.next(fields); ++i) {
    if (fields.size() != width) refuse_width(lines.place(), fields, width);
  }
}

}  // namespace trainctl
